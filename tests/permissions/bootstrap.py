"""The permissions boundary of the CDK's bootstrap."""

from __future__ import annotations

import re
from typing import Any

from cfnlint.decode import cfn_yaml
from tests.hosting.conftest import ROOT
from tests.permissions.judging import document
from tests.permissions.templates import ACCOUNT, REGION

__all__ = ["BOUNDARY", "of_the_bootstrap"]

BOUNDARY = f"arn:aws:iam::{ACCOUNT}:policy/cdk-hnb659fds-permissions-boundary-{ACCOUNT}-{REGION}"


def of_the_bootstrap() -> str:
    """The policy that `cdk bootstrap --example-permissions-boundary` creates, from the template of the command."""
    template = ROOT / "node_modules" / "aws-cdk" / "lib" / "api" / "bootstrap" / "bootstrap-template.yaml"
    resources: dict[str, Any] = cfn_yaml.load(str(template))["Resources"]
    properties = resources["CdkBoostrapPermissionsBoundaryPolicy"]["Properties"]
    values = {"Partition": "aws", "AccountId": ACCOUNT, "Region": REGION, "Qualifier": "hnb659fds"}

    def filled(part: Any) -> Any:
        if isinstance(part, dict) and "Fn::Sub" in part:
            return re.sub(r"\$\{(?:AWS::)?(\w+)\}", lambda found: values[found[1]], str(part["Fn::Sub"]))
        if isinstance(part, dict):
            return {str(key): filled(each) for key, each in part.items()}
        return [filled(each) for each in part] if isinstance(part, list) else str(part)

    return document(filled(properties["PolicyDocument"]))
