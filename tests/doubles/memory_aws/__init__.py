"""Doubles of S3, CodeBuild, SageMaker Processing and CloudWatch Logs in memory, behind clients that botocore's service
models check: every request and every answer. They know what the handlers of `lambda/` call, and nothing else.
"""

from memory_aws.client import Call, Client, Wire, refusal
from memory_aws.clock import Clock
from memory_aws.codebuild import CodeBuild
from memory_aws.jobs import Folder, Program, ProgramDouble
from memory_aws.logs import Logs
from memory_aws.processing import Processing
from memory_aws.s3 import S3

__all__ = [
    "S3",
    "Call",
    "Client",
    "Clock",
    "CodeBuild",
    "Folder",
    "Logs",
    "Processing",
    "Program",
    "ProgramDouble",
    "Wire",
    "refusal",
]
