"""Lambda Cloud, API v1 (the folder cannot be named `lambda`: that is a word of the language)."""
