"""Plumbing: what the constructs need of the CDK in common, whatever they are about."""
