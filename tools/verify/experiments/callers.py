"""What IAM makes of the policies that callers and publishers get."""

from __future__ import annotations

from collections.abc import Iterator

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_ssm as ssm
from tools.verify.experiment import Experiment, Observation
from tools.verify.experiments._stacks import outputs, store
from tools.verify.trial import Trial, error_of, prefix_of

_IAM_SECONDS = 60
"""For a new role to reach every part of IAM ("Changes that I make are not always immediately visible")."""


def _stacks(app: cdk.App) -> None:
    stack = cdk.Stack(app, prefix_of("callers"))
    bucket = store(stack).bucket
    role = iam.Role(stack, "Caller", assumed_by=iam.AccountRootPrincipal())
    allowed, other = (
        ssm.StringParameter(stack, each, parameter_name=f"/{stack.stack_name}/{each}", string_value="value")
        for each in ("Allowed", "Other")
    )
    role.add_to_policy(iam.PolicyStatement(actions=["ssm:GetParameters"], resources=[allowed.parameter_arn]))
    objects = bucket.arn_for_objects
    role.add_to_policy(iam.PolicyStatement(actions=["s3:GetObject"], resources=[objects("async/*")]))
    role.add_to_policy(
        iam.PolicyStatement(
            actions=["s3:ListBucket"],
            resources=[bucket.bucket_arn],
            conditions={"StringLike": {"s3:prefix": "async/*"}},
        )
    )
    role.add_to_policy(
        iam.PolicyStatement(actions=["s3:PutObject", "s3:GetObject"], resources=[objects("of/${aws:userid}/*")])
    )
    role.add_to_policy(
        iam.PolicyStatement(actions=["s3:PutObject", "s3:GetObject"], resources=[objects("catalogue/*")])
    )
    outputs(stack, Role=role.role_arn, Allowed=allowed.parameter_name, Other=other.parameter_name)


def _observe(trial: Trial) -> Iterator[Observation]:
    deployed = trial.deploy()
    bucket = deployed["Bucket"]
    role = trial.assume(deployed["Role"])
    s3, parameters = role("s3"), role("ssm")

    def read(*names: str) -> tuple[str, str]:
        return error_of(parameters.get_parameters, Names=[deployed[each] for each in names])

    trial.until(lambda: not read("Allowed")[0], seconds=_IAM_SECONDS)
    alone, both = read("Allowed")[0], read("Allowed", "Other")[0]
    yield Observation(
        "several_parameters",
        not alone and both == "AccessDeniedException",
        f"the allowed parameter: {alone or 'read'}; together with another one: {both or 'read'}",
    )
    code, message = error_of(s3.get_object, Bucket=bucket, Key="async/missing")
    yield Observation("missing_object", code == "NoSuchKey", f"{code}: {message}")

    mine, (code, message) = trial.assume(deployed["Role"], "another"), ("", "")
    identity = mine("sts").get_caller_identity()["UserId"]
    own, _ = error_of(mine("s3").put_object, Bucket=bucket, Key=f"of/{identity}/x", Body=b"")
    first = role("sts").get_caller_identity()["UserId"]
    others, _ = error_of(mine("s3").put_object, Bucket=bucket, Key=f"of/{first}/x", Body=b"")
    yield Observation(
        "user_id",
        not own and others == "AccessDenied",
        f"below the UserId of the session: {own or 'written'}; below that of another session: {others or 'written'}",
    )
    written = [
        error_of(s3.put_object, Bucket=bucket, Key="catalogue/x", Body=b"", **condition)[0]
        for condition in ({"IfNoneMatch": "*"}, {"IfNoneMatch": "*"}, {"IfMatch": '"another"'})
    ]
    yield Observation(
        "conditional_write",
        written == ["", "PreconditionFailed", "PreconditionFailed"],
        f"if absent: {written[0] or 'written'}, then {written[1]}; if unchanged: {written[2]}",
    )


EXPERIMENT = Experiment(
    parts=("several_parameters", "missing_object", "user_id", "conditional_write"),
    minutes=6,
    dollars=0.01,
    spends="some requests to S3",
    observe=_observe,
    stacks=_stacks,
)
