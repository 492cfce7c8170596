"""How requests to the big clouds are signed: one module for each scheme, shared by all products of a cloud."""
