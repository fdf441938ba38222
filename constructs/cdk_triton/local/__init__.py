"""An AWS on this machine for these stacks."""

from cdk_triton.local.aws import LocalAws

__all__ = ["LocalAws"]
