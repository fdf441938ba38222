"""The rights with which `cdk-triton artifacts build` acts: the role of the bootstrap, or the caller's own."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError
from tests.cli.artifacts.conftest import ASSETS, PSEUDO, assets

from cdk_triton.cli.artifacts import publishing
from cdk_triton.cli.artifacts.assembly import Asset, read_stack
from cdk_triton.cli.artifacts.aws import Aws

if TYPE_CHECKING:
    from tests.cli.artifacts.conftest import Synthesise, World

    from golden_messages import Messages


class Assumed:
    """A double of STS: the first credentials are about to expire, as those of an hour are after a long upload."""

    def __init__(self, world: World) -> None:
        self.asked: list[dict[str, str]] = []
        self._environment = world.aws.environment()  # the local AWS knows no other credentials

    def assume_role(self, **arguments: str) -> dict[str, Any]:
        self.asked.append(arguments)
        hours = min(len(self.asked), 2) - 1
        expiration = datetime.now(UTC) + timedelta(hours=hours, minutes=5)
        return {
            "Credentials": {
                "AccessKeyId": self._environment["AWS_ACCESS_KEY_ID"],
                "SecretAccessKey": self._environment["AWS_SECRET_ACCESS_KEY"],
                "SessionToken": "test",
                "Expiration": expiration,
            }
        }


def test_a_role_is_assumed_again_when_its_credentials_expire(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    aws, sts = Aws(), Assumed(world)
    monkeypatch.setattr(aws, "client", lambda service, client=aws.client: sts if service == "sts" else client(service))

    s3 = aws.client_as("s3", "arn:aws:iam::1:role/publishing", "secret")
    for _ in range(2):
        s3.head_object(Bucket=ASSETS, Key="code.zip")

    role = {"RoleArn": "arn:aws:iam::1:role/publishing", "RoleSessionName": "cdk-triton", "ExternalId": "secret"}
    assert sts.asked == [role, role]


class Refusing:
    """A double of the region: no role may be assumed."""

    def __init__(self, world: World) -> None:
        self._world = world

    def client(self, service: str) -> Any:
        return self._world.s3

    def client_as(self, *_: object) -> Any:
        raise ClientError({"Error": {"Code": "AccessDenied"}}, "AssumeRole")


@pytest.mark.slow
def test_without_the_role_of_the_bootstrap_the_callers_own_rights_serve(
    messages: Messages, world: World, synthesise: Synthesise, tmp_path: Path
) -> None:
    (planned,) = read_stack(synthesise(b"one"), "Models", PSEUDO).planned
    asset = Asset(planned.asset.path, ASSETS, "triton-x.json", "arn:aws:iam::1:role/publishing", None)
    lines: list[str] = []

    publishing.Publisher(Refusing(world), "123456789012", lines.append).publish(asset)  # type: ignore[arg-type]

    assert "AccessDenied" in lines[0]
    messages.record("cdk-triton artifacts", lines[0])
    assert "triton-x.json" in assets(world)
