"""Endpoints: variants, how they are updated, and who calls them."""
