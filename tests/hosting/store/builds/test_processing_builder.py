"""Jobs of SageMaker Processing: what they may do, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_kms as kms
from aws_cdk.assertions import Template

from cdk_triton import SageMakerProcessingBuilder, TritonArtifactStore
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

FUNCTION = "AWS::Lambda::Function"
BUCKET = "<StoreBucket4FBDE984.Arn>"
JOB_LOGS = "arn:aws:logs:eu-west-1:111122223333:log-group:/aws/sagemaker/ProcessingJobs"


def test_a_processing_job_may_do_exactly_this(ireland: cdk.Stack, grants: Callable[[cdk.Stack, str], set[str]]) -> None:
    TritonArtifactStore(ireland, "Store", builders=[SageMakerProcessingBuilder()])

    assert grants(ireland, "StoreProcessingRole") == {
        "ecr:GetAuthorizationToken on *",
        f"s3:GetObject on {BUCKET}/staging/*/in/*",
        f"s3:PutObject on {BUCKET}/staging/*/out/*",
        f"s3:AbortMultipartUpload on {BUCKET}/staging/*/out/*",
        f's3:ListBucket on {BUCKET} {{"StringLike": {{"s3:prefix": "staging/*/in*"}}}}',
        f"logs:CreateLogGroup on {JOB_LOGS}:*",
        f"logs:DescribeLogStreams on {JOB_LOGS}:*",
        f"logs:CreateLogStream on {JOB_LOGS}:log-stream:cdk-triton-*",
        f"logs:PutLogEvents on {JOB_LOGS}:log-stream:cdk-triton-*",
        'cloudwatch:PutMetricData on * {"StringEquals": {"cloudwatch:namespace": "/aws/sagemaker/ProcessingJobs"}}',
    }
    jobs = "arn:aws:sagemaker:eu-west-1:111122223333:processing-job/cdk-triton-*"
    condition = '{"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}}'
    assert grants(ireland, "StoreIsCompleteRole") >= {
        f"sagemaker:AddTags on {jobs}",
        f"sagemaker:CreateProcessingJob on {jobs}",
        f"sagemaker:DescribeProcessingJob on {jobs}",
        f"iam:PassRole on <StoreProcessingRoleBE818DA5.Arn> {condition}",
        f"s3:GetBucketTagging on {BUCKET}",
        f"logs:DescribeLogStreams on {JOB_LOGS}:*",
        f"logs:GetLogEvents on {JOB_LOGS}:log-stream:cdk-triton-*",
    }


class TestItsOwnKey:
    @staticmethod
    def store(stack: cdk.Stack, **arguments: Any) -> str:
        """A store with a key, and a builder with another: its ARN."""
        keys = {id: kms.Key(stack, id) for id in ("Of the store", "Of the builder")}
        builder = SageMakerProcessingBuilder(encryption_key=keys["Of the builder"], **arguments)
        TritonArtifactStore(stack, "Store", builders=[builder], encryption_key=keys["Of the store"])
        (name,) = (name for name in Template.from_stack(stack).find_resources("AWS::KMS::Key") if "builder" in name)
        return f"<{name}.Arn>"

    def test_encrypts_what_jobs_write_and_the_volumes_that_take_a_key(
        self, world: World, ireland: cdk.Stack, flattened: Callable[[Any], str]
    ) -> None:
        key = self.store(ireland)

        variables = [
            each["Properties"]["Environment"]["Variables"] for each in world.resources(ireland, FUNCTION).values()
        ]
        (settings,) = (json.loads(flattened(each["BUILDERS"])) for each in variables if "BUILDERS" in each)
        assert settings["processing"]["kms_key"] == key
        assert settings["processing"]["volume_key_families"] == ["ml.p2", "ml.p3"]

    def test_may_be_used_by_jobs_and_read_by_the_handler(
        self, ireland: cdk.Stack, grants: Callable[[cdk.Stack, str], set[str]]
    ) -> None:
        key = self.store(ireland)

        by_job, by_handler = (grants(ireland, role) for role in ("StoreProcessingRole", "StoreIsCompleteRole"))
        by_services = '{"Bool": {"kms:GrantIsForAWSResource": "true"}}'
        assert {line for line in by_job if key in line} == {
            *(f"kms:{action} on {key}" for action in ("Decrypt", "Encrypt", "GenerateDataKey")),
            f"kms:CreateGrant on {key} {by_services}",
        }
        assert {line for line in by_handler if key in line} == {f"kms:Decrypt on {key}"}

    def test_is_granted_to_no_volume_that_rejects_it(
        self, ireland: cdk.Stack, grants: Callable[[cdk.Stack, str], set[str]]
    ) -> None:
        self.store(ireland, instance_type="ml.g5.xlarge")

        assert not [line for line in grants(ireland, "StoreProcessingRole") if "CreateGrant" in line]

    def test_is_no_alias_and_is_in_the_region(self, messages: Messages, ireland: cdk.Stack) -> None:
        with messages.raises(ConfigurationError):
            SageMakerProcessingBuilder(encryption_key=kms.Alias.from_alias_name(ireland, "Alias", "alias/bank"))
        elsewhere = kms.Key.from_key_arn(ireland, "Key", "arn:aws:kms:us-east-1:111122223333:key/abc")
        with messages.raises(ConfigurationError):
            TritonArtifactStore(ireland, "Store", builders=[SageMakerProcessingBuilder(encryption_key=elsewhere)])


@pytest.mark.parametrize(
    ("arguments", "computed"),
    [
        pytest.param({"timeout": cdk.Duration.minutes(5)}, "5 minutes", id="a short timeout"),
        pytest.param({"instance_type": "ml.p5.48xlarge"}, "ml.p5.4xlarge", id="another type of the GPU"),
        pytest.param({"instance_type": "ml.p4d.24xlarge"}, "instance_type", id="no type of the GPU"),
        pytest.param({"volume": cdk.Size.tebibytes(17)}, "17408", id="a large volume"),
        pytest.param({"volume": cdk.Size.gibibytes(cdk.Token.as_number({"Ref": "Gib"}))}, "token", id="a token"),
    ],
)
def test_processing_rejects_what_it_cannot_do(messages: Messages, arguments: dict[str, Any], computed: str) -> None:
    with messages.raises(ConfigurationError) as caught:
        SageMakerProcessingBuilder(**arguments)
    assert computed in str(caught.value)
