"""A small stack of the kinds that the library makes: a Provider, a model that waits for it, an endpoint, its scaling.

Context: `version` changes the model, `refuse` makes the endpoint's host refuse it.
"""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_applicationautoscaling as autoscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sagemaker as sagemaker
from aws_cdk import custom_resources as cr

app = cdk.App()
version = app.node.try_get_context("version") or "1"
refuse = app.node.try_get_context("refuse")
stack = cdk.Stack(app, "Hosting", env=cdk.Environment(account="123456789012", region="us-east-1"))

bucket = s3.Bucket(stack, "Models", enforce_ssl=True, versioned=True)
code = lambda_.Code.from_asset("handler")
runtime = lambda_.Runtime.PYTHON_3_13
provider = cr.Provider(
    stack,
    "Provider",
    on_event_handler=lambda_.Function(stack, "OnEvent", runtime=runtime, handler="index.on_event", code=code),
    is_complete_handler=lambda_.Function(stack, "IsComplete", runtime=runtime, handler="index.is_complete", code=code),
    query_interval=cdk.Duration.seconds(30),
    total_timeout=cdk.Duration.minutes(5),
)
artifacts = cdk.CustomResource(
    stack,
    "Artifacts",
    resource_type="Custom::Artifacts",
    service_token=provider.service_token,
    properties={"Version": version, "Bucket": bucket.bucket_name},
)
role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"))
bucket.grant_read(role)
model = sagemaker.CfnModel(
    stack,
    "Model",
    execution_role_arn=role.role_arn,
    primary_container=sagemaker.CfnModel.ContainerDefinitionProperty(
        image="example.com/triton:1",
        model_data_url=bucket.s3_url_for_object("model.tar.gz"),
        environment={"VERSION": version, **({"REFUSE": refuse} if refuse else {})},
    ),
)
model.node.add_dependency(artifacts)
config = sagemaker.CfnEndpointConfig(
    stack,
    "Config",
    production_variants=[
        sagemaker.CfnEndpointConfig.ProductionVariantProperty(
            variant_name="main",
            model_name=model.attr_model_name,
            initial_instance_count=1,
            initial_variant_weight=1,
            instance_type="ml.g5.xlarge",
        )
    ],
)
endpoint = sagemaker.CfnEndpoint(stack, "Endpoint", endpoint_config_name=config.attr_endpoint_config_name)
target = autoscaling.CfnScalableTarget(
    stack,
    "Target",
    min_capacity=1,
    max_capacity=2,
    resource_id=f"endpoint/{endpoint.attr_endpoint_name}/variant/main",
    scalable_dimension="sagemaker:variant:DesiredInstanceCount",
    service_namespace="sagemaker",
)
target.node.add_dependency(endpoint)
cloudwatch.Alarm(
    stack,
    "Errors",
    evaluation_periods=1,
    threshold=1,
    metric=cloudwatch.Metric(
        namespace="AWS/SageMaker",
        metric_name="Invocation5XXErrors",
        dimensions_map={"EndpointName": endpoint.attr_endpoint_name},
    ),
)
cdk.CfnOutput(stack, "EndpointName", value=endpoint.attr_endpoint_name)
cdk.CfnOutput(stack, "ArtifactRegion", value=artifacts.get_att_string("Region"))
app.synth()
