"""Draws the way from a model repository to an endpoint: docs/images/architecture.svg.

The names of classes are checked against the public names of the library, and the prefixes are those of
cdk_triton.protocol.layout.
"""

from __future__ import annotations

import re

from tools.generate import Files, GenerateError, Generator
from tools.generate._shapes import arrow, box, frame, svg, text

import cdk_triton
from cdk_triton import client
from cdk_triton.protocol import layout

NAME = re.compile(r"\b(?:Triton|Model)[A-Z]\w+")
"""A word that the picture gives as the name of a class."""

WORDS = (
    "At synth, a ModelRepository is checked and its key is computed; the cloud assembly has templates and archives. "
    "In your AWS account, a deployment calls the handler of the TritonArtifactStore. The handler commits archives to "
    "the store's bucket. For a repository with recipes it starts a build job on a GPU first. A TritonModel or a "
    "TritonMultiModel serves from the bucket, behind a TritonEndpoint that your service invokes. The same cloud "
    "assembly deploys to this machine, where a local CloudFormation starts tritonserver behind a gateway."
)


def picture() -> bytes:
    """Return the picture.

    Raises:
        GenerateError: a class of the picture is not a public name of the library.
    """
    parts = [*_synth(), *_account(), *_machine(), *_service()]
    drawn = svg("From a model repository to an endpoint", WORDS, 942, 448, parts)
    unknown = {*NAME.findall(drawn.decode())} - {*cdk_triton.__all__, *client.__all__}
    if unknown:
        raise GenerateError(f"the picture names {sorted(unknown)}, which are not public names of cdk_triton")
    return drawn


def _synth() -> list[str]:
    """A workstation or a CI job: from the repository to the cloud assembly."""
    return [
        frame(16, 16, 206, 268, "CDK SYNTH"),
        box(30, 46, 178, 62, "ModelRepository", "config.pbtxt, models"),
        arrow("M119 108 V126"),
        box(30, 129, 178, 66, "Checks and keys", "faults that Triton rejects", "fail here, in seconds", kind="key"),
        arrow("M119 195 V213"),
        box(30, 216, 178, 54, "Cloud assembly", "templates and archives"),
    ]


def _account() -> list[str]:
    """The store with its bucket, handler and builds; beside it what serves from the bucket."""
    artifacts = layout.artifact_prefix("<repository>", "<key>")
    fleets = layout.fleet_prefix("<fleet>", "<release>-<gpu>")
    return [
        frame(296, 16, 630, 268, "YOUR AWS ACCOUNT"),
        frame(310, 46, 374, 224, "TritonArtifactStore"),
        box(324, 76, 346, 66, "Bucket", artifacts, fleets, kind="key"),
        box(324, 190, 138, 66, "Handler", "commits archives"),
        box(514, 190, 156, 66, "Build job, on a GPU", "only for recipes;", "CodeBuild or SageMaker"),
        arrow("M208 243 H321", "cdk deploy", (259, 236)),
        arrow("M394 190 V145"),
        arrow("M462 223 H511", "starts", (487, 216)),
        arrow("M592 190 V145"),
        box(732, 76, 180, 66, "TritonModel", "or TritonMultiModel,", "with many target models"),
        arrow("M670 109 H729"),
        box(732, 190, 180, 66, "TritonEndpoint", "GPU instances, host AMI,", "variants", kind="key"),
        arrow("M822 142 V187"),
    ]


def _machine() -> list[str]:
    """The local AWS, which deploys the same assembly."""
    return [
        frame(16, 314, 668, 118),
        text(136, 334, "THE SAME ASSEMBLY, ON THIS MACHINE: cdk-triton local", "label"),
        box(30, 346, 178, 66, "CloudFormation", "strict and local;", "moto keeps the state"),
        arrow("M119 270 V343"),
        box(267, 346, 178, 66, "tritonserver", "the real one;", "CPU stands in for GPU", kind="key"),
        arrow("M208 379 H264"),
        box(504, 346, 166, 66, "Gateway", "API of sagemaker-runtime"),
        arrow("M504 379 H448"),
    ]


def _service() -> list[str]:
    """The caller, which invokes either of the two endpoints."""
    return [
        box(732, 346, 180, 66, "Your service", "boto3 or TritonClient,", "TargetModel = an ensemble"),
        arrow("M822 346 V259"),
        arrow("M732 379 H673"),
    ]


def _files() -> Files:
    return {"docs/images/architecture.svg": picture()}


GENERATOR = Generator(_files)
