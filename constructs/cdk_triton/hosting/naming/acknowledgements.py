"""Acknowledgements of findings of cdk-nag and Checkov that this library cannot avoid, because of AWS or the CDK.

They are always recorded on the constructs, which costs nothing without cdk-nag. Each names exactly one finding: cdk-nag
3 matches ids literally, and the id of a finding about a wildcard contains the resource as cdk-nag prints it. So the ids
are computed from the texts in the policies.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from aws_cdk import Acknowledgment, CfnResource, Validations
from aws_cdk import aws_s3 as s3
from constructs import IConstruct

from cdk_triton.hosting.naming.per_construct import arn_of
from cdk_triton.hosting.naming.references import name_of_export, refers_weakly, weak_reference
from cdk_triton.hosting.naming.stacks import are_deployed_together, stack_of

__all__ = [
    "acknowledge",
    "acknowledge_nist",
    "acknowledge_wildcards",
    "bucket_identity",
    "imported_objects_arns",
    "skip_checkov",
]

NIST_PACKS: Mapping[str, frozenset[str]] = {
    "NIST.800.53.R5": frozenset({"CodeBuildProjectSourceRepoUrl"}),
    "HIPAA.Security": frozenset(),
    "PCI.DSS.321": frozenset({"CloudWatchAlarmAction", "LambdaConcurrency", "LambdaDLQ"}),
}
"""The packs of cdk-nag 3 with the rules of NIST 800-53 R5: the beginning of their ids, and the rules that they lack."""


def acknowledge(construct: IConstruct, reasons: Mapping[str, str]) -> None:
    """Acknowledge rules of AwsSolutions, such as `SF1`, for a construct and everything below it.

    Args:
        construct: the construct.
        reasons: the reason for each rule.
    """
    _acknowledge(construct, "AwsSolutions", reasons)


def acknowledge_nist(construct: IConstruct, reasons: Mapping[str, str]) -> None:
    """Acknowledge rules of NIST 800-53 R5, such as `LambdaDLQ`, for a construct and everything below it.

    The packs for HIPAA and PCI DSS have most of these rules too, under the same names. The same reasons hold there.

    Args:
        construct: the construct.
        reasons: the reason for each rule.
    """
    for pack, lacking in NIST_PACKS.items():
        _acknowledge(construct, pack, {rule: reason for rule, reason in reasons.items() if rule not in lacking})


def acknowledge_wildcards(construct: IConstruct, reasons: Mapping[str, str]) -> None:
    """Acknowledge that the policies below a construct allow resources with wildcards.

    Args:
        construct: the construct.
        reasons: the reason for each ARN.
    """
    resources = stack_of(construct).resolve(list(reasons))
    printed = (f"IAM5[Resource::{_printed(resource)}]" for resource in resources)
    acknowledge(construct, dict(zip(printed, reasons.values(), strict=True)))


def skip_checkov(resource: IConstruct | None, reasons: Mapping[str, str]) -> None:
    """Make Checkov skip checks of a resource, through metadata in the template ("Suppressing and Skipping").

    Args:
        resource: the L1 construct.
        reasons: the reason for each check, by the check's id, such as `CKV_AWS_116`.
    """
    assert isinstance(resource, CfnResource)  # as the callers make it
    resource.add_metadata("checkov", {"skip": [{"id": id, "comment": why} for id, why in reasons.items()]})


def imported_objects_arns(scope: IConstruct, bucket: s3.IBucket, pattern: str) -> list[str]:
    """The ARNs of a bucket's objects, in the forms that they can have in a policy of the scope's stack.

    CDK rewrites a reference into another stack when the app is synthesised. The result is needed earlier, so this
    function computes what the CDK will write: an export, or an output for a weak reference. A bucket that the app
    imports has neither. A nested stack gets a parameter, which the CDK names too late for this function.

    If references are weak, `CrossStackReferences.produce` may have made those to the bucket strong. No method of the
    CDK reports this, so the result has both forms.
    """
    if not isinstance(bucket, s3.Bucket):
        return [f"{bucket.bucket_arn}/{pattern}"]
    arn, producer, user = arn_of(bucket), stack_of(bucket), stack_of(scope)
    arns = [arn]
    if not are_deployed_together(producer, user):
        weakly = refers_weakly(user)
        arns = (
            [weak_reference(producer, arn), name_of_export(producer, arn)] if weakly else [producer.export_value(arn)]
        )
    return [f"{each}/{pattern}" for each in arns]


def bucket_identity(scope: IConstruct, bucket: s3.IBucket) -> list[str]:
    """Identify the bucket that a stack uses, independent of whether its references are weak or strong."""
    if not isinstance(bucket, s3.Bucket):
        return [f"{bucket.bucket_arn}/"]
    arn, producer = arn_of(bucket), stack_of(bucket)
    if not are_deployed_together(producer, stack_of(scope)):
        arn = name_of_export(producer, arn) if refers_weakly(stack_of(scope)) else producer.export_value(arn)
    resource = bucket.node.default_child
    name = resource.bucket_name if isinstance(resource, s3.CfnBucket) else None
    return [f"{arn}/", *([] if name is None else [name])]


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
            return json.dumps(value, separators=(",", ":"), ensure_ascii=False)  # such as Fn::GetStackOutput
