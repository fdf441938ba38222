"""CT1xx: what is in a model's directory."""
