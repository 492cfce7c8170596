"""Pages of diagnoses: the sentence first, then what it rests on."""
