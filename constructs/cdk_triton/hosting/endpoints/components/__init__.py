"""Endpoints that host inference components: each a model with copies of its own on shared instances."""
