"""A model on instances: the variant of an endpoint, its pools, reservations and metrics."""
