"""An account of moto with an endpoint, in which the handler of `Custom::TritonEndpointWait` runs."""

from __future__ import annotations

import json
from typing import Any

import boto3
from moto.sagemaker.models import sagemaker_backends

import artifacts

__all__ = ["NAME", "Account"]

NAME = "Search-Endpoint"
_ROLE = "arn:aws:iam::123456789012:role/r"


class Account:
    """An endpoint, and a stack whose resource `Waits` has its name for a physical id."""

    def __init__(self) -> None:
        sagemaker = boto3.client("sagemaker", region_name="us-east-1")
        sagemaker.create_model(
            ModelName="m",
            PrimaryContainer={"Image": "triton", "ModelDataUrl": "s3://store/model.tar.gz"},
            ExecutionRoleArn=_ROLE,
        )
        sagemaker.create_endpoint_config(
            EndpointConfigName="c",
            ProductionVariants=[
                {
                    "VariantName": "AllTraffic",
                    "ModelName": "m",
                    "InstanceType": "ml.g4dn.xlarge",
                    "InitialInstanceCount": 1,
                }
            ],
        )
        sagemaker.create_endpoint(EndpointName=NAME, EndpointConfigName="c")
        parameter = {"Type": "AWS::SSM::Parameter", "Properties": {"Name": NAME, "Type": "String", "Value": "x"}}
        template = json.dumps({"Resources": {"Waits": parameter}})
        made = boto3.client("cloudformation", region_name="us-east-1").create_stack(
            StackName="Served", TemplateBody=template
        )
        self.stack = made["StackId"]

    def becomes(self, status: str) -> None:
        sagemaker_backends["123456789012"]["us-east-1"].endpoints[NAME].endpoint_status = status

    def settles(self, kind: str, properties: dict[str, str], *, since: float = 0.0, **more: Any) -> bool:
        """Whether a request may go on, so many seconds after it was accepted."""
        event = {
            "RequestType": kind,
            "ResourceType": "Custom::TritonEndpointWait",
            "RequestId": "r",
            "StackId": self.stack,
            "ResourceProperties": properties,
            **more,
        }
        event |= artifacts.on_event(event, None)
        event["StartedAt"] -= since
        return bool(artifacts.is_complete(event, None)["IsComplete"])

    def may_change(self, waits: str = "Waits", since: float = 0.0) -> bool:
        changed = {"EndpointConfigName": "next", "NameIsIdOf": waits}
        return self.settles("Update", changed, since=since, PhysicalResourceId="r")

    def may_go(self, name: str = NAME, since: float = 0.0) -> bool:
        return self.settles("Delete", {"EndpointName": NAME}, since=since, PhysicalResourceId=name)
