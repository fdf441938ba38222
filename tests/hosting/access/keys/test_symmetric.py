"""Keys that cannot encrypt data of AWS's services."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3

from cdk_triton import CodeBuildGpuBuilder, DataCapture, TritonArtifactStore, TritonEndpoint, TritonModel
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

Use = Callable[["World", cdk.Stack, kms.IKey], object]


def _model(world: World, stack: cdk.Stack) -> TritonModel:
    return TritonModel(stack, "Model", repository=world.repository("text"), platform=world.platform)


def _capture(world: World, stack: cdk.Stack, key: kms.IKey) -> object:
    capture = DataCapture(bucket=s3.Bucket(stack, "Captured"), sampling_percentage=5, encryption_key=key)
    return TritonEndpoint(stack, "Endpoint", model=_model(world, stack), data_capture=capture)


USES: dict[str, Use] = {
    "store": lambda world, stack, key: TritonArtifactStore(stack, "Store", encryption_key=key),
    "former": lambda world, stack, key: TritonArtifactStore(stack, "Store", former_keys=[key]),
    "builder": lambda world, stack, key: CodeBuildGpuBuilder(encryption_key=key),
    "endpoint": lambda world, stack, key: TritonEndpoint(
        stack, "Endpoint", model=_model(world, stack), encryption_key=key
    ),
    "capture": _capture,
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_an_asymmetric_key_is_rejected(world: World, stack: cdk.Stack, messages: Messages, use: Use) -> None:
    key = kms.Key(stack, "Key", key_spec=kms.KeySpec.RSA_2048, key_usage=kms.KeyUsage.ENCRYPT_DECRYPT)

    with messages.raises(ConfigurationError):
        use(world, stack, key)


KEYS: dict[str, Callable[[cdk.Stack], Any]] = {
    "for HMAC": lambda stack: kms.Key(
        stack, "Key", key_spec=kms.KeySpec.HMAC_256, key_usage=kms.KeyUsage.GENERATE_VERIFY_MAC
    ),
    "behind an alias": lambda stack: kms.Key(stack, "Key", key_spec=kms.KeySpec.RSA_4096).add_alias("alias/bank"),
}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_a_key_of_another_kind_is_rejected(
    stack: cdk.Stack, messages: Messages, key: Callable[[cdk.Stack], Any]
) -> None:
    with messages.raises(ConfigurationError):
        TritonArtifactStore(stack, "Store", encryption_key=key(stack))


def _of_a_parameter(stack: cdk.Stack) -> kms.IKey:
    key = kms.Key(stack, "Key")
    resource = key.node.default_child
    assert isinstance(resource, kms.CfnKey)
    resource.key_spec = cdk.CfnParameter(stack, "Spec").value_as_string
    return key


SYMMETRIC: dict[str, Callable[[cdk.Stack], kms.IKey]] = {
    "by default": lambda stack: kms.Key(stack, "Key"),
    "literally": lambda stack: kms.Key(stack, "Key", key_spec=kms.KeySpec.SYMMETRIC_DEFAULT),
    "from a parameter": _of_a_parameter,
    "imported": lambda stack: kms.Key.from_key_arn(stack, "Key", "arn:aws:kms:us-east-1:111122223333:key/a"),
}


@pytest.mark.parametrize("key", SYMMETRIC.values(), ids=SYMMETRIC)
def test_a_symmetric_key_is_taken(stack: cdk.Stack, key: Callable[[cdk.Stack], kms.IKey]) -> None:
    TritonArtifactStore(stack, "Store", encryption_key=key(stack))
