"""What models get from a store in the stack that theirs is nested in."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import aws_cdk as cdk
from cdk_nag import AwsSolutionsChecks

from cdk_triton import TritonArtifactStore, TritonModel

if TYPE_CHECKING:
    from tests.hosting.conftest import World


def test_a_nested_model_takes_the_store_as_a_parameter_whose_name_is_left_for_cdk_nag(world: World) -> None:
    """CDK names the parameter when the app is synthesised, after everything that could be acknowledged."""
    app = world.app()
    stack = cdk.Stack(app, "Search")
    store = TritonArtifactStore(stack, "Store", builders=[])
    nested = cdk.NestedStack(stack, "Nested")
    TritonModel(nested, "Model", repository=world.repository(), platform=world.platform, store=store)

    app.synth()
    report = AwsSolutionsChecks().validate_scope(nested)
    (left,) = (violation.rule_name for violation in report.violations or [])
    assert re.fullmatch(r".*IAM5\[Resource::<referenceto\w+Arn>/artifacts/text/\*\]", left)
    assert "Fn::ImportValue" not in json.dumps(world.template(nested))
