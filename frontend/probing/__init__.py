"""The pages of probes and of go-live tests: what they show, in words, rows, curves and forms."""
