"""The examples, deployed by the unmodified CDK CLI onto the local AWS.

Test and Live of the pipeline are one account there, so that nothing shows that policies suffice. The handlers and the
build program are the real ones; `trtexec` is a stand-in, and so is the host of the endpoints.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx.parser
import pytest
from botocore.exceptions import ClientError

from cdk_triton_local.aws import LocalAws
from cdk_triton_local.endpoints import Component, Endpoint, Invocation, Response, Shift, all_at_once

if TYPE_CHECKING:
    from golden_messages import Messages

ROOT = Path(__file__).parents[2]
CDK = ROOT / "node_modules" / ".bin" / "cdk"
ENSEMBLE = "model_assets/sentence_embedding"
ACCOUNT, REGION = "123456789012", "us-east-1"

BERT = """
<ir_version: 8, opset_import: ["" : 17]>
graph (int32[N, L] token_ids, int32[N, L] attn_mask) => (float[N, 384] output)
<float[384] ones = {ONES}>
{
  axes = Constant<value = int64[1] {1}>()
  ids = Cast<to = 1>(token_ids)
  mask = Cast<to = 1>(attn_mask)
  masked = Mul(ids, mask)
  sum = ReduceSum<keepdims = 1>(masked, axes)
  output = Mul(sum, ones)
}
""".replace("ONES", ", ".join(["1"] * 384))


class EndpointDouble:
    """Stands in for Triton, and remembers what it was given to serve."""

    def __init__(self) -> None:
        self.endpoints: dict[str, Endpoint] = {}

    def deploy(self, endpoint: Endpoint, shift: Shift = all_at_once) -> None:
        self.endpoints[endpoint.name] = endpoint

    def set_weights(self, name: str, weights: Mapping[str, float]) -> None:
        pass

    def place(self, component: Component, copies: int) -> None:
        pass

    def withdraw(self, name: str) -> None:
        pass

    def remove(self, name: str) -> None:
        self.endpoints.pop(name, None)

    def invoke(self, invocation: Invocation) -> Response:
        return Response(200, {}, invocation.body)

    def stream(self, invocation: Invocation) -> Response:
        return self.invoke(invocation)

    def close(self) -> None:
        self.endpoints.clear()


class Account:
    """An account with the CDK's bootstrap, and the CLI."""

    def __init__(self, aws: LocalAws, host: EndpointDouble) -> None:
        self.aws = aws
        self.host = host

    def cdk(self, directory: Path, *arguments: str) -> None:
        done = subprocess.run(
            [CDK, *arguments, "--no-notices", "--ci"],
            cwd=directory,
            env={**self.aws.process_environment(), "NODE_NO_WARNINGS": "1", "CDK_VALIDATION": "false"},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def deploy(self, directory: Path, stacks: str, app: str, *context: str) -> None:
        # The models that are built here have no tokenizers, so they do not load.
        values = [part for each in (*context, "cdk-triton:rehearsal=skip") for part in ("--context", each)]
        self.cdk(directory, "deploy", stacks, "--require-approval", "never", "--app", f"python {app}", *values)

    def outputs(self, stack: str) -> dict[str, str]:
        found = self.aws.client("cloudformation").describe_stacks(StackName=stack)["Stacks"][0]
        return {each["OutputKey"]: each["OutputValue"] for each in found["Outputs"]}

    def read(self, bucket: str, name: str) -> bytes:
        """The one object of the bucket whose key ends so."""
        s3 = self.aws.client("s3")
        found = s3.list_objects_v2(Bucket=bucket, Prefix="artifacts/")["Contents"]
        (key,) = (each["Key"] for each in found if each["Key"].endswith(name))
        body: bytes = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
        return body

    def builds(self) -> int:
        codebuild = self.aws.client("codebuild")
        return sum(
            len(codebuild.list_builds_for_project(projectName=project)["ids"])
            for project in codebuild.list_projects()["projects"]
        )


@pytest.fixture(name="account", scope="module")
def _account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    host = EndpointDouble()
    with LocalAws(tmp_path_factory.mktemp("aws"), host_factory=lambda _: host) as aws:
        account = Account(aws, host)
        account.cdk(tmp_path_factory.mktemp("bootstrap"), "bootstrap", f"aws://{ACCOUNT}/{REGION}")
        yield account


def write_pipeline(directory: Path, network: bytes) -> Path:
    """The example with the accounts of somebody who has one only, and the ensemble without its weights."""
    prepared = shutil.ignore_patterns("*.onnx", "vendor", "tokenizer.json")
    shutil.copytree(ROOT / ENSEMBLE, directory / ENSEMBLE, ignore=prepared)
    shutil.copy(ROOT / "cdk.json", directory)
    app = (ROOT / "examples" / "pipeline_app.py").read_text(encoding="utf-8")
    app = re.sub("222222222222|333333333333", ACCOUNT, app).replace("eu-west-1", REGION)
    app = re.sub('WEIGHTS_SHA256 = ".*"', f'WEIGHTS_SHA256 = "{hashlib.sha256(network).hexdigest()}"', app)
    (directory / "examples").mkdir()
    (directory / "examples" / "pipeline_app.py").write_text(app, encoding="utf-8")
    return directory


def test_live_promotes_the_very_archive_that_test_has_built(account: Account, tmp_path: Path) -> None:
    network = onnx.parser.parse_model(BERT).SerializeToString()
    pipeline, app = write_pipeline(tmp_path, network), "examples/pipeline_app.py"
    s3 = account.aws.client("s3")
    for bucket in (f"acme-weights-{REGION}", f"acme-access-logs-{ACCOUNT}-{REGION}"):
        s3.create_bucket(Bucket=bucket)
    s3.put_object(Bucket=f"acme-weights-{REGION}", Key="sentence_embedding/bert.onnx", Body=network)

    account.deploy(pipeline, "Pipeline/Test/*", app)
    tested = account.outputs("Test-Artifacts")
    promotion = (f"tested-bucket={tested['Bucket']}", f"tested-key={tested['KeyArn']}")
    account.deploy(pipeline, "Pipeline/Live/*", app, *promotion)

    live = account.outputs("Live-Artifacts")["Bucket"]
    manifests = [json.loads(account.read(bucket, "manifest.json")) for bucket in (tested["Bucket"], live)]
    assert account.builds() == 1
    assert account.read(live, "model.tar.gz") == account.read(tested["Bucket"], "model.tar.gz")
    assert manifests[1]["promoted_from"] == tested["Bucket"]
    assert manifests[1]["build"] == manifests[0]["build"]
    served: dict[str, Any] = {
        stack: account.host.endpoints[account.outputs(stack)["EndpointName"]].variants[0].container.model_data_url
        for stack in ("Test-Text", "Live-Text")
    }
    assert [url.split("/")[2] for url in served.values()] == [tested["Bucket"], live]


def test_the_pipeline_itself_is_rejected_before_anything_is_made(messages: Messages, account: Account) -> None:
    template = (ROOT / "tests" / "snapshots" / "Pipeline.template.json").read_text(encoding="utf-8")
    capabilities = ["CAPABILITY_NAMED_IAM"]

    with pytest.raises(ClientError) as caught:
        account.aws.client("cloudformation").create_stack(
            StackName="Pipeline", TemplateBody=template, Capabilities=capabilities
        )
    said = caught.value.response["Error"]["Message"]
    messages.record("ClientError", said)
    assert "'AWS::CodePipeline::Pipeline'" in said


def write_product(directory: Path) -> Path:
    """What a product team has: the app of the package's README, and models."""
    text = (ROOT / "examples" / "platform_team" / "README.md").read_text(encoding="utf-8")
    (app,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (directory / "app.py").write_text(app, encoding="utf-8")
    shutil.copytree(ROOT / "examples" / "platform_team" / "acme_triton", directory / "acme_triton")
    shutil.copy(ROOT / "cdk.json", directory)
    model = directory / "models" / "network"
    (model / "1").mkdir(parents=True)
    (model / "config.pbtxt").write_text(
        'platform: "onnxruntime_onnx"\nmax_batch_size: 8\n'
        'input [ { name: "IN" data_type: TYPE_FP32 dims: [ 4 ] } ]\n'
        'output [ { name: "OUT" data_type: TYPE_FP32 dims: [ 4 ] } ]\n'
    )
    graph = (
        '<ir_version: 8, opset_import: ["" : 17]>\ngraph (float[N, 4] IN) => (float[N, 4] OUT) { OUT = Identity(IN) }'
    )
    (model / "1" / "model.onnx").write_bytes(onnx.parser.parse_model(graph).SerializeToString())
    return directory


def test_a_product_team_gets_an_endpoint_as_the_company_runs_them(account: Account, tmp_path: Path) -> None:
    aws = account.aws
    ec2 = aws.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnets = [ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.0.{number}.0/24")["Subnet"]["SubnetId"] for number in (1, 2)]
    parameters = {
        "vpc": vpc,
        "subnet-a": subnets[0],
        "subnet-b": subnets[1],
        "key": aws.client("kms").create_key()["KeyMetadata"]["Arn"],
        "access-logs": "acme-logs",
        "pager": aws.client("sns").create_topic(Name="acme-pager")["TopicArn"],
    }
    aws.client("s3").create_bucket(Bucket=parameters["access-logs"])
    for name, value in parameters.items():
        aws.client("ssm").put_parameter(Name=f"/acme/ml/{name}", Value=value, Type="String")

    account.deploy(write_product(tmp_path), "Search", "app.py")

    (endpoint,) = (each for each in account.host.endpoints.values() if each.variants[0].container.mode == "MultiModel")
    alarms = aws.client("cloudwatch").describe_alarms()["MetricAlarms"]
    paging = [each for each in alarms if parameters["pager"] in each["AlarmActions"]]
    scaling = aws.client("application-autoscaling")
    (target,) = scaling.describe_scalable_targets(ServiceNamespace="sagemaker")["ScalableTargets"]
    (policy,) = scaling.describe_scaling_policies(ServiceNamespace="sagemaker")["ScalingPolicies"]
    tracked = policy["TargetTrackingScalingPolicyConfiguration"]
    (entry,) = aws.client("cloudwatch").list_dashboards()["DashboardEntries"]
    dashboard = aws.client("cloudwatch").get_dashboard(DashboardName=entry["DashboardName"])["DashboardBody"]
    assert endpoint.name in json.dumps([each["Dimensions"] for each in paging])
    assert (target["MinCapacity"], target["MaxCapacity"]) == (2, 4)
    assert tracked["TargetValue"] == 8
    assert tracked["PredefinedMetricSpecification"] == {
        "PredefinedMetricType": "SageMakerVariantConcurrentRequestsPerModelHighResolution"
    }
    assert endpoint.name in dashboard
    models = aws.client("sagemaker").list_models()["Models"]
    described = [aws.client("sagemaker").describe_model(ModelName=each["ModelName"]) for each in models]
    assert [sorted(each["VpcConfig"]["Subnets"]) for each in described if each.get("VpcConfig")] == [sorted(subnets)]
