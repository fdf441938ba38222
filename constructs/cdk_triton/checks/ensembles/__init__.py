"""CT3xx: ensembles and the models that they run."""
