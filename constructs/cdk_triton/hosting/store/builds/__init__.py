"""The builders that build during a deployment, and the choice between them."""
