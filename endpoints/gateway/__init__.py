"""What those need who run a proxy of their own before replicas: configurations made of the same routes as gateways serve."""
