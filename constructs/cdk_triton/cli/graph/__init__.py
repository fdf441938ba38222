"""`cdk-triton graph`: the data flow of a repository as a picture."""

from __future__ import annotations

from cdk_triton.cli.graph.command import graph

__all__ = ["graph"]
