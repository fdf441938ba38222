"""The builders that build during a deployment, the choice between them, and their facts that are known at synth."""
