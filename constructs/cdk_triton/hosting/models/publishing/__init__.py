"""Publishing outside of stacks: a state machine, its functions, and who may start it."""
