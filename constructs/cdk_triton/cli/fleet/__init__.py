"""`cdk-triton fleet`: publishes ensembles of a `TritonMultiModel` that has a publisher, without a deployment.

The state machine of the publisher makes every change. The command checks and packs repositories, uploads them, starts
an execution and follows it. Nothing here starts Node or imports the CDK.
"""

from __future__ import annotations

from cdk_triton.cli.fleet.commands import app

__all__ = ["app"]
