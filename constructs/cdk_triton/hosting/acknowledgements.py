"""Answers to cdk-nag's findings that AWS or CDK force upon this library.

They are recorded on the constructs in any case, cost nothing where cdk-nag is not used, and name exactly one finding
each: cdk-nag 3 matches ids literally, and the id of a wildcard contains the resource as cdk-nag prints it. So the ids
are computed from the very texts that the policies contain.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from aws_cdk import Acknowledgment, Validations
from aws_cdk import aws_s3 as s3
from constructs import IConstruct

from cdk_triton.hosting._cdk.buckets import arn_of
from cdk_triton.hosting._cdk.stacks import are_deployed_together, stack_of

__all__ = ["acknowledge", "acknowledge_nist", "acknowledge_wildcards", "imported_objects_arn"]


def acknowledge(construct: IConstruct, reasons: Mapping[str, str]) -> None:
    """Acknowledge rules of AwsSolutions, such as `SF1`, for a construct and everything below it.

    Args:
        construct: the construct.
        reasons: by rule.
    """
    _acknowledge(construct, "AwsSolutions", reasons)


def acknowledge_nist(construct: IConstruct, reasons: Mapping[str, str]) -> None:
    """Acknowledge rules of NIST 800-53 R5, such as `LambdaDLQ`, for a construct and everything below it.

    Args:
        construct: the construct.
        reasons: by rule.
    """
    _acknowledge(construct, "NIST.800.53.R5", reasons)


def acknowledge_wildcards(construct: IConstruct, reasons: Mapping[str, str]) -> None:
    """Acknowledge that the policies below a construct allow resources with wildcards.

    Args:
        construct: the construct.
        reasons: by ARN.
    """
    resources = stack_of(construct).resolve(list(reasons))
    printed = (f"IAM5[Resource::{_printed(resource)}]" for resource in resources)
    acknowledge(construct, dict(zip(printed, reasons.values(), strict=True)))


def imported_objects_arn(scope: IConstruct, bucket: s3.IBucket, pattern: str) -> str:
    """The ARN of a bucket's objects, as it will stand in a policy of the scope's stack.

    A reference into another stack becomes an import when the app is synthesised. The export is made here, the same that
    CDK would make then, because its name is needed now. A bucket that the app only imports has none to export. A stack
    that is deployed with the bucket's own gets a parameter, and no export; CDK names it too late to be known here.
    """
    if not isinstance(bucket, s3.Bucket):
        return f"{bucket.bucket_arn}/{pattern}"
    arn, home = arn_of(bucket), stack_of(bucket)
    if not are_deployed_together(home, stack_of(scope)):
        arn = home.export_value(arn)
    return f"{arn}/{pattern}"


def _acknowledge(construct: IConstruct, pack: str, reasons: Mapping[str, str]) -> None:
    acknowledgements = [Acknowledgment(id=f"{pack}-{rule}", reason=reason) for rule, reason in reasons.items()]
    Validations.of(construct).acknowledge(*acknowledgements)


def _printed(value: Any) -> str:
    """A resolved value as cdk-nag prints it: references in angle brackets, imports by name."""
    match value:
        case str():
            return value
        case {"Fn::Join": [str() as separator, list() as parts]}:
            return separator.join(_printed(part) for part in parts)
        case {"Fn::Sub": str() as text}:
            return re.sub(r"\$\{([^}]*)\}", r"<\1>", text)
        case {"Fn::GetAtt": [resource, attribute]}:
            return f"<{resource}.{attribute}>"
        case {"Ref": name}:
            return f"<{name}>"
        case {"Fn::ImportValue": name}:
            return _printed(name)
        case _:
            return str(value)  # nothing that this library puts before a wildcard
