"""Plumbing: the parts of the CDK that all constructs need."""
