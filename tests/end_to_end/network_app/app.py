"""A model in a VPC without internet, isolated, served without an archive, from an image of the stack's own repository.

The functions of its store are in another such VPC. Every role has a permissions boundary.

Context: `addend` changes one file of the repository.
"""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_iam as iam

from cdk_triton import (
    ModelRepository,
    ServingPlatform,
    TritonArtifactStore,
    TritonEndpoint,
    TritonModel,
    add_vpc_endpoints,
)

CONFIG = """
backend: "python"
max_batch_size: 8
input { name: "IN" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] }
"""
ADD = """
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        values = [pb.get_input_tensor_by_name(request, "IN").as_numpy() for request in requests]
        return [pb.InferenceResponse([pb.Tensor("OUT", value + ADDEND)]) for value in values]
"""

app = cdk.App()
root = Path("models")
for path, content in {
    "adder/config.pbtxt": CONFIG,
    "adder/1/model.py": ADD.replace("ADDEND", app.node.try_get_context("addend") or "1.0"),
}.items():
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(content)

env = cdk.Environment(account="123456789012", region="us-east-1")
artifacts, stack = cdk.Stack(app, "Artifacts", env=env), cdk.Stack(app, "Serving", env=env)
services = "cloudformation cloudwatch codebuild ec2 ecr iam kms lambda logs s3 sagemaker sns states"
for each in (artifacts, stack):  # as docs/platform_teams.md says
    allowed = iam.PolicyStatement(actions=[f"{service}:*" for service in services.split()], resources=["*"])
    iam.PermissionsBoundary.of(each).apply(iam.ManagedPolicy(each, "Boundary", statements=[allowed]))
isolated = ec2.SubnetConfiguration(name="Isolated", subnet_type=ec2.SubnetType.PRIVATE_ISOLATED)
vpc, vpc_of_store = (
    ec2.Vpc(each, "Vpc", availability_zones=["us-east-1a", "us-east-1b"], subnet_configuration=[isolated])
    for each in (stack, artifacts)
)
add_vpc_endpoints(vpc)
add_vpc_endpoints(vpc_of_store, store_functions=True)
store = TritonArtifactStore(artifacts, "Store", vpc=vpc_of_store)
image = ecr.Repository(stack, "Mirror").repository_uri_for_digest(f"sha256:{'a' * 64}")
model = TritonModel(
    stack,
    "Model",
    store=store,
    repository=ModelRepository.from_directory(root),
    platform=ServingPlatform(release="25.09", image=image, instance_type="ml.g5.2xlarge"),
    vpc=vpc,
    network_isolation=True,
    uncompressed=True,
)
endpoint = TritonEndpoint(stack, "Endpoint", model=model)
cdk.CfnOutput(stack, "EndpointName", value=endpoint.endpoint_name)
app.synth()
