"""Jobs of SageMaker Processing: what they may do, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import aws_cdk as cdk
import pytest

from cdk_triton import SageMakerProcessingBuilder, TritonArtifactStore
from cdk_triton.errors import ConfigurationError

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
    ("arguments", "message"),
    [
        (
            {"timeout": cdk.Duration.minutes(5)},
            "the timeout of SageMakerProcessingBuilder is 5 minutes: use whole minutes, from 10 to 2160",
        ),
        (
            {"instance_type": "ml.p5.48xlarge"},
            "SageMaker does not offer ml.p5.48xlarge for Processing jobs: use ml.p5.4xlarge, with the same GPU",
        ),
        (
            {"instance_type": "ml.p4d.24xlarge"},
            "SageMaker does not offer ml.p4d.24xlarge for Processing jobs, nor another type with its GPU: leave "
            "instance_type out",
        ),
        ({"volume": cdk.Size.tebibytes(17)}, "the volume has 17408 GiB: use 1 to 16384"),
    ],
)
def test_processing_refuses_what_it_cannot_do(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        SageMakerProcessingBuilder(**arguments)
    assert str(caught.value) == message
