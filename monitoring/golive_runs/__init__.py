"""Go-live tests as they are run: begun with consent and within caps, followed piece by piece, judged, kept."""
