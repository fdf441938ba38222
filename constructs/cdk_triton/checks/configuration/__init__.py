"""CT2xx: what a configuration means."""
