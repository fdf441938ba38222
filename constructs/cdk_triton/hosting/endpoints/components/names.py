"""Names of components: made here, all in lower case, and read back from the ARN.

SageMaker writes a name in lower case into an ARN and keeps its capitals elsewhere: of endpoints that is documented, of
inference components the exporter yet-another-cloudwatch-exporter of prometheus-community has a test ("inference
component match in Upper case" in pkg/job/maxdimassociator/associator_sagemaker_test.go). CloudFormation returns the ARN
alone, and the names that it generates have capitals. So the name of an ARN would be another name than that of
InvokeEndpoint, of CloudWatch and of Application Auto Scaling. A name without capitals is the same everywhere.

No component is ever replaced by CloudFormation (its schema has no `createOnlyProperties`), so a name that is set does
not stand in the way. It contains the id of the stack: a stack that is made again, or another one of the same app, has
other names.
"""

from __future__ import annotations

import re

from aws_cdk import Fn
from constructs import Construct

from cdk_triton.hosting.naming.logical_ids import digest_of
from cdk_triton.hosting.naming.stacks import stack_of

__all__ = ["generated_name", "name_in_arn"]

READABLE_CHARACTERS = 18
"""A name has 63, and a stack's UUID takes 36 of them, the digest 7, and the hyphens between them two."""


def generated_name(scope: Construct, endpoint_name: str | None) -> str:
    """The name of a component; a token that other stacks may use, too.

    Args:
        scope: the component.
        endpoint_name: that of the endpoint, where the user gave one. A component cannot move to another endpoint.
    """
    readable = re.sub(r"[^a-z0-9]+", "-", scope.node.id.lower())[:READABLE_CHARACTERS].strip("-")
    digest = digest_of(stack_of(scope), [scope.node.path, endpoint_name])
    of_stack = Fn.select(2, Fn.split("/", stack_of(scope).stack_id))  # arn:…:stack/<name>/<UUID>
    return "-".join([*([readable] if readable else []), digest, of_stack])


def name_in_arn(component_arn: str) -> str:
    """The name in a component's ARN, `arn:…:inference-component/<name>`."""
    return Fn.select(1, Fn.split("/", component_arn))
