"""`cdk-triton artifacts`: what a store contains, what uses it, what can be deleted; and builds before a deployment.

Nothing here starts Node or imports the CDK: the store is found through the CloudFormation stack that holds it, and a
cloud assembly is read as the files that `cdk synth` wrote.
"""

from __future__ import annotations

from cdk_triton.cli.artifacts.commands import app

__all__ = ["app"]
