"""The local AWS as its clients see it: one port, endpoints that become ready or say why not."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from botocore.exceptions import ClientError

from cdk_triton.errors import LocalError
from cdk_triton_local.aws import LocalAws

if TYPE_CHECKING:
    from tests.local_aws.conftest import EndpointDouble, Signed

    from golden_messages import Messages


def test_the_environment_is_all_that_a_client_needs(local_aws: LocalAws) -> None:
    """boto3 in a process that has nothing but these variables finds this AWS."""
    code = """
import boto3
print(boto3.client("sts").get_caller_identity()["Account"], boto3.client("s3").meta.endpoint_url)
"""
    found = subprocess.run(
        [sys.executable, "-c", code], env=local_aws.environment(), check=True, capture_output=True, text=True
    ).stdout.split()
    assert found == ["123456789012", local_aws.url]


def test_the_environment_of_a_process_keeps_the_rest_and_drops_what_leads_elsewhere(local_aws: LocalAws) -> None:
    base = {"PATH": "/bin", "AWS_PROFILE": "p", "AWS_ENDPOINT_URL_STS": "http://elsewhere", "no_proxy": "a.example, b"}
    found = local_aws.process_environment(base)
    assert {name: found.get(name) for name in base} == {
        "PATH": "/bin",
        "AWS_PROFILE": None,
        "AWS_ENDPOINT_URL_STS": None,
        "no_proxy": "a.example,b,127.0.0.1,localhost",
    }
    assert found["AWS_ENDPOINT_URL"] == local_aws.url
    assert "AWS_PROFILE" in base


def test_a_service_that_is_not_here_is_one_sentence_and_a_line_of_the_log(messages: Messages, tmp_path: Path) -> None:
    code = f"""
from pathlib import Path
from botocore.exceptions import ClientError
from cdk_triton_local.aws import LocalAws
from unittest.mock import Mock
with LocalAws(Path({str(tmp_path)!r}), host_factory=lambda aws: Mock(), log=print) as aws:
    try:
        aws.client("pricing").get_products(ServiceCode="AmazonSageMaker")
    except ClientError as error:
        print(error)
"""
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)

    started, logged, said = found.stdout.splitlines()  # and no line of moto's, which has no date
    assert started.startswith("the local AWS answers at ")
    assert logged == "the local AWS does not have the service 'pricing', so it rejects GetProducts"
    assert "does not have the service 'pricing'" in said
    messages.record("cdk-triton local", said)


@pytest.mark.parametrize(
    ("service", "operation", "arguments"),
    [
        pytest.param("athena", "list_engine_versions", {}, id="json"),
        pytest.param("cloudwatch", "get_metric_widget_image", {"MetricWidget": "{}"}, id="cbor"),
        pytest.param("ec2", "describe_fpga_images", {}, id="ec2"),
        pytest.param("iam", "get_organizations_access_report", {"JobId": "0" * 36}, id="query"),
        pytest.param("lambda", "get_account_settings", {}, id="path of a REST API"),
        pytest.param("route53", "get_geo_location", {}, id="xml"),
        pytest.param("sagemaker", "list_hubs", {}, id="sagemaker"),
        pytest.param(
            "sagemaker",
            "create_transform_job",
            {
                "TransformJobName": "job",
                "ModelName": "model",
                "TransformInput": {"DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://b/in"}}},
                "TransformOutput": {"S3OutputPath": "s3://b/out"},
                "TransformResources": {"InstanceType": "ml.g5.xlarge", "InstanceCount": 1},
            },
            id="a job of SageMaker",
        ),
        pytest.param(
            "sagemaker",
            "start_pipeline_execution",
            {"PipelineName": "pipeline", "ClientRequestToken": "0" * 32},
            id="a pipeline of SageMaker",
        ),
        pytest.param("stepfunctions", "redrive_execution", {"executionArn": "arn:aws:states:::e"}, id="signing name"),
    ],
)
def test_an_operation_that_moto_does_not_implement_is_one_sentence(
    messages: Messages, local_aws: LocalAws, service: str, operation: str, arguments: dict[str, Any]
) -> None:
    with pytest.raises(ClientError) as caught:
        getattr(local_aws.client(service), operation)(**arguments)
    error = caught.value.response["Error"]
    assert error["Code"] == "NotImplemented"
    messages.record("NotImplemented", error["Message"])


def test_a_missing_object_keeps_its_answer_of_s3(local_aws: LocalAws) -> None:
    s3 = local_aws.client("s3")
    s3.create_bucket(Bucket="without-objects")
    with pytest.raises(ClientError) as caught:
        s3.head_object(Bucket="without-objects", Key="none")
    assert caught.value.response["Error"]["Code"] == "404"


def test_another_account_and_region_can_be_played(tmp_path: Path, endpoint_double: EndpointDouble) -> None:
    code = f"""
import sys
from pathlib import Path
from cdk_triton_local.aws import LocalAws
from unittest.mock import Mock
place = Path({str(tmp_path)!r})
with LocalAws(place, account="210987654321", region="eu-west-3", host_factory=lambda aws: Mock()) as aws:
    aws.client("s3").create_bucket(Bucket="bucket", CreateBucketConfiguration={{"LocationConstraint": "eu-west-3"}})
    print(aws.client("sts").get_caller_identity()["Account"], aws.client("sns").create_topic(Name="t")["TopicArn"])
"""
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert out.split() == ["210987654321", "arn:aws:sns:eu-west-3:210987654321:t"]


def test_accounts_have_keys_of_their_own_because_the_cdk_remembers_whose_a_key_is(tmp_path: Path) -> None:
    played = [LocalAws(tmp_path, account=account) for account in ("123456789012", "210987654321")]
    keys = [aws.environment()["AWS_ACCESS_KEY_ID"] for aws in played]
    assert len(set(keys)) == 2


def test_one_process_holds_one_local_aws(
    messages: Messages, local_aws: LocalAws, tmp_path: Path, endpoint_double: EndpointDouble
) -> None:
    with messages.raises(LocalError):
        LocalAws(tmp_path, host_factory=lambda _: endpoint_double).start()
    assert local_aws.client("sts").get_caller_identity()["Account"] == "123456789012"


def test_it_listens_on_loopback_only(local_aws: LocalAws) -> None:
    port = int(local_aws.url.rsplit(":", 1)[1])
    listening = {each.laddr for each in psutil.Process().net_connections("inet") if each.status == psutil.CONN_LISTEN}
    assert {each.ip for each in listening if each.port == port} == {"127.0.0.1"}


def test_a_bucket_that_enforces_ssl_can_still_be_used(local_aws: LocalAws) -> None:
    s3 = local_aws.client("s3")
    s3.create_bucket(Bucket="enforced")
    statement = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": ["arn:aws:s3:::enforced", "arn:aws:s3:::enforced/*"],
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    s3.put_bucket_policy(Bucket="enforced", Policy=json.dumps({"Version": "2012-10-17", "Statement": [statement]}))
    s3.put_object(Bucket="enforced", Key="k", Body=b"x")
    assert s3.get_object(Bucket="enforced", Key="k")["Body"].read() == b"x"
    assert "SecureTransport" in s3.get_bucket_policy(Bucket="enforced")["Policy"]


def make_endpoint_config(local_aws: LocalAws, name: str, **environment: str) -> None:
    sagemaker = local_aws.client("sagemaker")
    sagemaker.create_model(
        ModelName=name,
        PrimaryContainer={
            "Image": "example.com/triton:1",
            "Mode": "MultiModel",
            "ModelDataUrl": "s3://models/fleet/",
            "Environment": environment,
            "MultiModelConfig": {"ModelCacheSetting": "Disabled"},
        },
    )
    variant = {"VariantName": "main", "ModelName": name, "InitialInstanceCount": 1, "InstanceType": "ml.g6e.2xlarge"}
    sagemaker.create_endpoint_config(EndpointConfigName=name, ProductionVariants=[variant])


def until_settled(local_aws: LocalAws, name: str) -> dict[str, Any]:
    while True:
        found: dict[str, Any] = local_aws.client("sagemaker").describe_endpoint(EndpointName=name)
        if found["EndpointStatus"] not in ("Creating", "Updating"):
            return found
        threading.Event().wait(0.01)


def test_an_endpoint_lives_in_its_host(local_aws: LocalAws, endpoint_double: EndpointDouble) -> None:
    sagemaker = local_aws.client("sagemaker")
    make_endpoint_config(local_aws, "one", SAGEMAKER_TRITON_LOG_VERBOSE="0")
    make_endpoint_config(local_aws, "two")
    sagemaker.create_endpoint(EndpointName="e", EndpointConfigName="one")
    assert until_settled(local_aws, "e")["EndpointStatus"] == "InService"
    (variant,) = endpoint_double.endpoints["e"].variants
    assert (variant.name, variant.weight, variant.instance_type) == ("main", 1.0, "ml.g6e.2xlarge")
    assert (variant.container.mode, variant.container.model_cache) == ("MultiModel", False)
    assert variant.container.environment == {"SAGEMAKER_TRITON_LOG_VERBOSE": "0"}

    sagemaker.update_endpoint(EndpointName="e", EndpointConfigName="two")
    assert until_settled(local_aws, "e")["EndpointConfigName"] == "two"
    assert endpoint_double.endpoints["e"].config_name == "two"
    sagemaker.delete_endpoint(EndpointName="e")
    assert "e" not in endpoint_double.endpoints


def test_an_endpoint_that_cannot_be_served_fails_and_says_why(local_aws: LocalAws) -> None:
    make_endpoint_config(local_aws, "refused", REJECT="the archive has no config.pbtxt")
    local_aws.client("sagemaker").create_endpoint(EndpointName="bad", EndpointConfigName="refused")
    failed = until_settled(local_aws, "bad")
    assert (failed["EndpointStatus"], failed["FailureReason"]) == ("Failed", "the archive has no config.pbtxt")


def test_a_failed_update_leaves_the_old_configuration_in_service(local_aws: LocalAws) -> None:
    sagemaker = local_aws.client("sagemaker")
    make_endpoint_config(local_aws, "good")
    make_endpoint_config(local_aws, "worse", REJECT="no")
    sagemaker.create_endpoint(EndpointName="kept", EndpointConfigName="good")
    until_settled(local_aws, "kept")
    sagemaker.update_endpoint(EndpointName="kept", EndpointConfigName="worse")
    found = until_settled(local_aws, "kept")
    assert (found["EndpointStatus"], found["EndpointConfigName"], found["FailureReason"]) == ("InService", "good", "no")


@pytest.mark.parametrize(
    ("operation", "request_", "message"),
    [
        (
            "create_endpoint",
            {"EndpointName": "x", "EndpointConfigName": "none"},
            "Could not find endpoint configuration",
        ),
        ("update_endpoint", {"EndpointName": "none", "EndpointConfigName": "none"}, 'Could not find endpoint "none"'),
        (
            "update_endpoint_weights_and_capacities",
            {"EndpointName": "none", "DesiredWeightsAndCapacities": [{"VariantName": "main", "DesiredWeight": 1}]},
            'Could not find endpoint "none"',
        ),
    ],
)
def test_what_sagemaker_would_reject_or_is_not_modelled_is_a_sentence(
    local_aws: LocalAws, operation: str, request_: dict[str, Any], message: str
) -> None:
    with pytest.raises(ClientError, match=message):
        getattr(local_aws.client("sagemaker"), operation)(**request_)


def test_an_instance_type_that_sagemaker_does_not_have_is_rejected(local_aws: LocalAws) -> None:
    variant = {"VariantName": "v", "ModelName": "m", "InitialInstanceCount": 1, "InstanceType": "ml.g99.xlarge"}
    with pytest.raises(ClientError, match=r"ml\.g99\.xlarge"):
        local_aws.client("sagemaker").create_endpoint_config(EndpointConfigName="c", ProductionVariants=[variant])


def test_an_invocation_reaches_the_host_with_its_headers(local_aws: LocalAws) -> None:
    answer = local_aws.client("sagemaker-runtime").invoke_endpoint(
        EndpointName="any name", Body=b"\x00\xff", ContentType="application/octet-stream", TargetModel="text-1.tar.gz"
    )
    assert answer["Body"].read() == b"\x00\xff"
    assert answer["ResponseMetadata"]["HTTPHeaders"]["x-target"] == "text-1.tar.gz"


def test_invocations_share_a_connection(local_aws: LocalAws, signed: Signed) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", int(local_aws.url.rsplit(":", 1)[1]))
    connection.connect()
    before = connection.sock.getsockname()
    for body in (b"one", b"two"):
        headers = signed(local_aws, "POST", "/endpoints/e/invocations", body)
        connection.request("POST", "/endpoints/e/invocations", body, headers)
        assert connection.getresponse().read() == body
    assert connection.sock.getsockname() == before
    connection.close()


def test_boto3_reads_a_streamed_answer_in_its_parts(local_aws: LocalAws) -> None:
    runtime = local_aws.client("sagemaker-runtime")
    for _ in range(2):  # on one connection
        answer = runtime.invoke_endpoint_with_response_stream(EndpointName="e", Body=b"abc", Accept="text/plain")
        assert answer["ContentType"] == "text/plain"
        assert [event["PayloadPart"]["Bytes"] for event in answer["Body"]] == [b"a", b"b", b"c"]


def test_a_port_in_use_is_a_sentence(messages: Messages, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code = f"""
from pathlib import Path
from cdk_triton.errors import LocalError
from cdk_triton_local.aws import LocalAws
try:
    LocalAws(Path({str(tmp_path)!r}), port={port}, host_factory=None).start()
except LocalError as error:
    print(error)
"""
        out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()
    assert f"port {port} " in out
    messages.record("LocalError", out.replace(str(port), "PORT"))
