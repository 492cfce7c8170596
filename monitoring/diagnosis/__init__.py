"""Why an endpoint is slow: a verdict with its evidence, its confidence and one next step. Pure: values in, a value out."""
