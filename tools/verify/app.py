"""The CDK app with the stacks of an experiment: `python -m tools.verify.app NAME`."""

from __future__ import annotations

import sys

import aws_cdk as cdk
from tools.verify.experiment import experiment


def main(name: str) -> None:
    """Synthesise the stacks, with a tag by which a person finds what they own."""
    app = cdk.App()
    if (stacks := experiment(name).stacks) is not None:
        stacks(app)
    cdk.Tags.of(app).add("cdk-triton-verify", name)
    app.synth()


if __name__ == "__main__":
    main(sys.argv[1])
