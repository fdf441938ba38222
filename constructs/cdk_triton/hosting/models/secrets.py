"""Finds secrets among the CDK tokens in a container's variables. The template would show their values."""

from __future__ import annotations

import json
from collections.abc import Mapping

from aws_cdk import CfnParameter, Reference, SecretValue, Tokenization
from constructs import Construct

from cdk_triton._tokens import has_token
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.naming.stacks import stack_of
from cdk_triton.triton.secrets import looks_secret, secret_rejection

__all__ = ["reject_secrets"]


def reject_secrets(scope: Construct, variables: Mapping[str, str]) -> None:
    """Reject variables whose tokens come from a store of secrets, or from a parameter with `NoEcho`.

    Raises:
        ConfigurationError: there is such a variable, which the message names.
    """
    for name, value in variables.items():
        if not has_token(value):
            continue
        # A reference with such a name is usually the ARN of a secret, which the template does not show.
        checked_name = "" if name.lower().endswith("token") else name
        why = _secret_kind(value) or looks_secret(checked_name, json.dumps(stack_of(scope).resolve(value)))
        if why:
            raise ConfigurationError(f"{scope.node.path}: {secret_rejection(name, why)}")


def _secret_kind(value: str) -> str | None:
    for token in Tokenization.reverse_string(value).tokens:
        if isinstance(token, SecretValue):
            return "is a SecretValue"
        target = token.target if isinstance(token, Reference) else None
        if isinstance(target, CfnParameter) and target.no_echo:
            return f"is the parameter {target.node.id}, which has NoEcho"
    return None
