"""What builds during a deployment: the builders, which of them builds what, and what of it synth knows."""
