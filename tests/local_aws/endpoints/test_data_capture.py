"""Data capture of the local AWS, as its clients see it."""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.local_aws.conftest import EndpointDouble

    from cdk_triton_local.aws import LocalAws

BINARY = "application/vnd.sagemaker-triton.binary+json;json-header-size=2"

Deploy = Callable[..., str]


@pytest.fixture(scope="module")
def deploy(local_aws: LocalAws) -> Deploy:
    """Deploy an endpoint of one name with a data capture, as often as wanted."""
    sagemaker = local_aws.client("sagemaker")
    local_aws.client("s3").create_bucket(Bucket="captured")
    container = {"Image": "example.com/triton:1", "ModelDataUrl": "s3://models/one.tar.gz"}
    sagemaker.create_model(ModelName="model", PrimaryContainer=container)

    def deployed(name: str, **capture: Any) -> str:
        config = f"{name}-{len(sagemaker.list_endpoint_configs()['EndpointConfigs'])}"
        variant = {
            "VariantName": "AllTraffic",
            "ModelName": "model",
            "InitialInstanceCount": 1,
            "InstanceType": "ml.g5.xlarge",
        }
        wanted = {
            "InitialSamplingPercentage": 100,
            "DestinationS3Uri": f"s3://captured/{name}/kept",
            "CaptureOptions": [{"CaptureMode": "Input"}, {"CaptureMode": "Output"}],
            "CaptureContentTypeHeader": {"JsonContentTypes": ["application/json"]},
        } | capture
        sagemaker.create_endpoint_config(
            EndpointConfigName=config, ProductionVariants=[variant], DataCaptureConfig=wanted
        )
        exists = any(each["EndpointName"] == name for each in sagemaker.list_endpoints()["Endpoints"])
        operation = sagemaker.update_endpoint if exists else sagemaker.create_endpoint
        operation(EndpointName=name, EndpointConfigName=config)
        while sagemaker.describe_endpoint(EndpointName=name)["EndpointStatus"] != "InService":
            threading.Event().wait(0.01)
        return name

    return deployed


def invoke(aws: LocalAws, endpoint: str, body: bytes, content_type: str, **more: str) -> None:
    client = aws.client("sagemaker-runtime")
    client.invoke_endpoint(EndpointName=endpoint, Body=body, ContentType=content_type, **more)["Body"].read()


def captured(aws: LocalAws, endpoint: str) -> dict[str, Any]:
    """Key to line."""
    s3 = aws.client("s3")
    keys = [each["Key"] for each in s3.list_objects_v2(Bucket="captured", Prefix=f"{endpoint}/").get("Contents", [])]
    return {key: json.loads(s3.get_object(Bucket="captured", Key=key)["Body"].read()) for key in keys}


def test_a_line_has_both_sides_below_the_prefix_endpoint_variant_and_hour(local_aws: LocalAws, deploy: Deploy) -> None:
    invoke(local_aws, deploy("both"), b'{"inputs": []}', "application/json; charset=utf-8", InferenceId="mine")

    ((key, line),) = captured(local_aws, "both").items()
    assert re.fullmatch(r"both/kept/both/AllTraffic/\d{4}/\d\d/\d\d/\d\d/\d\d-\d\d-\d{3}-[0-9a-f-]{36}\.jsonl", key)
    assert line["captureData"]["endpointInput"] == {
        "observedContentType": "application/json; charset=utf-8",
        "mode": "INPUT",
        "data": '{"inputs": []}',
        "encoding": "JSON",
    }
    # The double answers plain text, which no list names.
    assert line["captureData"]["endpointOutput"]["encoding"] == "BASE64"
    assert (line["eventMetadata"]["inferenceId"], line["eventVersion"]) == ("mine", "0")


def test_tritons_binary_format_is_base64(local_aws: LocalAws, deploy: Deploy) -> None:
    body = b"{}" + bytes(range(256))
    invoke(local_aws, deploy("binary"), body, BINARY)

    (line,) = captured(local_aws, "binary").values()
    side = line["captureData"]["endpointInput"]
    assert (side["observedContentType"], side["encoding"]) == (BINARY, "BASE64")
    assert base64.b64decode(side["data"]) == body


@pytest.mark.parametrize(
    ("capture", "kept"),
    [
        ({"CaptureOptions": [{"CaptureMode": "Output"}]}, ["endpointOutput"]),
        ({"CaptureOptions": [{"CaptureMode": "InputAndOutput"}]}, ["endpointInput", "endpointOutput"]),
        ({"InitialSamplingPercentage": 0}, None),
        ({"EnableCapture": False}, None),
    ],
    ids=["output", "both", "no share", "switched off"],
)
def test_what_is_not_asked_for_is_not_kept(
    local_aws: LocalAws, deploy: Deploy, capture: dict[str, Any], kept: list[str] | None, request: pytest.FixtureRequest
) -> None:
    name = "part-" + re.sub(r"\W", "", request.node.callspec.id)
    invoke(local_aws, deploy(name, **capture), b"x", "text/csv")

    lines = list(captured(local_aws, name).values())
    assert [list(line["captureData"]) for line in lines] == ([] if kept is None else [kept])


def test_an_update_changes_what_is_kept_and_deletion_ends_it(
    local_aws: LocalAws, deploy: Deploy, endpoint_double: EndpointDouble
) -> None:
    deploy("changing", InitialSamplingPercentage=0)
    invoke(local_aws, "changing", b"x", "text/csv")
    deploy("changing")
    invoke(local_aws, "changing", b"y", "text/csv")

    (line,) = captured(local_aws, "changing").values()
    assert base64.b64decode(line["captureData"]["endpointInput"]["data"]) == b"y"
    assert endpoint_double.endpoints["changing"].capture is not None


def test_an_answer_does_not_depend_on_the_bucket(local_aws: LocalAws, deploy: Deploy) -> None:
    invoke(local_aws, deploy("nowhere", DestinationS3Uri="s3://no-such-bucket/x"), b"x", "text/csv")
