"""What the pages about inference endpoints show: lists, one endpoint, deploying, gateways, keys, how servers serve."""
