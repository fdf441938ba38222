"""Jobs of SageMaker Processing: what they may do, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest

from cdk_triton import SageMakerProcessingBuilder, TritonArtifactStore
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from golden_messages import Messages

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
        f"sagemaker:CreateProcessingJob on {jobs}",
        f"sagemaker:DescribeProcessingJob on {jobs}",
        f"iam:PassRole on <StoreProcessingRoleBE818DA5.Arn> {condition}",
        f"logs:DescribeLogStreams on {JOB_LOGS}:*",
        f"logs:GetLogEvents on {JOB_LOGS}:log-stream:cdk-triton-*",
    }


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
def test_processing_refuses_what_it_cannot_do(messages: Messages, arguments: dict[str, Any], computed: str) -> None:
    with messages.raises(ConfigurationError) as caught:
        SageMakerProcessingBuilder(**arguments)
    assert computed in str(caught.value)
