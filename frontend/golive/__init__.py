"""The pages of go-live tests: the form with what it will take, a run as it goes, its report."""
