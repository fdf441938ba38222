"""Roles with each grant of the library, for those who call endpoints and publish ensembles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from tests.security.everything import IRELAND

from cdk_triton import TritonEndpoint

if TYPE_CHECKING:
    from constructs import IConstruct

__all__ = ["add_callers"]

IMPORTED = f"arn:aws:sagemaker:{IRELAND.region}:{IRELAND.account}:endpoint/imported"


def add_callers(serving: cdk.Stack) -> cdk.Stack:
    """A stack with the callers of the endpoints of `tests/security/everything.py`, named for what they are granted."""
    app = cdk.App.of(serving)
    assert app is not None
    callers = cdk.Stack(app, "Callers", env=IRELAND)

    def role(name: str) -> iam.Role:
        return iam.Role(callers, name, assumed_by=iam.AccountRootPrincipal())

    made: dict[str, Any] = {_path(each): each for each in serving.node.find_all()}
    made["Single"].grant_invoke(role("CallsSingle"))
    made["Multi"].grant_invoke(role("CallsText"), target_models=["text"])
    tenants = role("CallsTenants")
    made["Multi"].grant_invoke(tenants, published=["tenant-*"])
    made["Fleet"].grant_read_catalogue(tenants)
    made["Queued"].grant_invoke(role("CallsQueued"))
    (component,) = (each for path, each in made.items() if path.startswith("Components/") and path.endswith("/Text"))
    component.grant_invoke(role("CallsComponent"))
    made["Components"].grant_invoke(role("CallsComponents"))
    made["Fleet/Publisher"].grant_publish(role("Publishes"))
    made["Fleet/Publisher"].grant_publish_all(role("PublishesAll"))
    imported = TritonEndpoint.from_endpoint_arn(callers, "Imported", IMPORTED)
    imported.grant_invoke(role("CallsImported"))
    imported.grant_invoke(role("CallsTextOfImported"), target_models=["text"])
    app.node.find_child("Artifacts").node.find_child("Store").grant_read(role("ReadsStore"))  # type: ignore[attr-defined]
    return callers


def _path(construct: IConstruct) -> str:
    return construct.node.path.partition("/")[2]
