"""The templates of the example stacks as somebody has looked at them: a second net under the other tests.

`make generate` rewrites them: read the diff.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import aws_cdk as cdk
from aws_cdk.assertions import Template
from tests.recorded import assert_recorded

__all__ = ["assert_as_looked_at"]


def assert_as_looked_at(stack: cdk.Stack, name: str) -> None:
    """The template of the stack is that of the snapshot.

    What follows from the contents of assets, ours and CDK's own, is not looked at here.
    """
    template = json.dumps(Template.from_stack(stack).to_json(), indent=1, sort_keys=True)
    template = re.sub(r"[0-9a-f]{64}", "<sha256>", template) + "\n"

    assert_recorded(Path(__file__).with_name(f"{name}.template.json"), lambda _: template)
