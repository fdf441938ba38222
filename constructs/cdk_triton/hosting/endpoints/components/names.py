"""Generates the names of components, in lower case, and reads them from ARNs.

In an ARN, SageMaker writes a name in lower case, and elsewhere with its capitals. AWS documents that for endpoints. For
inference components, a test of prometheus-community's yet-another-cloudwatch-exporter shows it ("inference component
match in Upper case" in pkg/job/maxdimassociator/associator_sagemaker_test.go). CloudFormation returns only the ARN, and
generates names with capitals. So a name from the ARN would differ from the name that InvokeEndpoint, CloudWatch and
Application Auto Scaling use. A name without capitals is the same everywhere.

A fixed name would make the replacement of a resource fail, but CloudFormation never replaces a component (its schema
has no `createOnlyProperties`). The name contains the id of the stack, so it differs in another stack, and in the same
stack after it is deleted and created again.
"""

from __future__ import annotations

import re

from aws_cdk import Fn
from constructs import Construct

from cdk_triton.hosting.naming.logical_ids import digest_of
from cdk_triton.hosting.naming.stacks import stack_of

__all__ = ["generated_name", "name_in_arn"]

READABLE_CHARACTERS = 18
"""A name has 63 characters: 36 of the stack's UUID, 7 of the digest, 2 hyphens, and these."""


def generated_name(scope: Construct, endpoint_name: str | None) -> str:
    """The name of a component, a token that other stacks can use, too.

    Args:
        scope: the component.
        endpoint_name: the user's name of the endpoint, or None. Another endpoint gives another name, because a
            component cannot move to it.
    """
    readable = re.sub(r"[^a-z0-9]+", "-", scope.node.id.lower())[:READABLE_CHARACTERS].strip("-")
    digest = digest_of(stack_of(scope), [scope.node.path, endpoint_name])
    of_stack = Fn.select(2, Fn.split("/", stack_of(scope).stack_id))  # arn:…:stack/<name>/<UUID>
    return "-".join([*([readable] if readable else []), digest, of_stack])


def name_in_arn(component_arn: str) -> str:
    """The name in a component's ARN, `arn:…:inference-component/<name>`."""
    return Fn.select(1, Fn.split("/", component_arn))
