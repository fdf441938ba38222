"""Publishing without a deployment: a state machine, its functions, and the permission to start it."""
