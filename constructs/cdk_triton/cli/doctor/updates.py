"""Finds out whether a deployment of this app would change a deployed stack dangerously."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path

from botocore.exceptions import ClientError

from cdk_triton._wording import listed
from cdk_triton.cli.artifacts.assembly import read_nested_templates, read_templates
from cdk_triton.cli.doctor.account import Account
from cdk_triton.cli.doctor.answers import Answer, State
from cdk_triton.cli.doctor.changes import Change, dangerous_changes
from cdk_triton.cli.doctor.endpoints import Template
from cdk_triton.cli.doctor.names_in_use import Templates, moved_parameters, removed_exports
from cdk_triton.cli.doctor.templates import deployed_template, is_deployed

__all__ = ["SUBJECT", "updates"]

SUBJECT = "updates"


def updates(account: Account, app: Path) -> Iterator[Answer]:
    """Compare each stack of the app that is deployed with its new template; of nested stacks, only the imports count.

    Args:
        account: the account that the app would be deployed to.
        app: the directory of the cloud assembly.

    Raises:
        ConfigurationError: a file of the cloud assembly cannot be read.
        ClientError: AWS rejects a call.
    """
    new = dict(read_templates(app, account.id, account.region))
    nested = list(read_nested_templates(app, account.id, account.region))
    found = {name: deployed_template(account, name) for name in new if is_deployed(account, name)}
    old = {name: template for name, template in found.items() if template is not None}
    sound = True
    for name, change in _changes(account, old, new, nested):
        sound = False
        yield Answer(subject=SUBJECT, state=change.state, found=f"stack {name}: {change.found}", fix=change.fix)
    if old and sound:
        yield Answer(subject=SUBJECT, state=State.OK, found=f"{listed(sorted(old))}: no dangerous change")


def _changes(
    account: Account, old: Templates, new: Templates, nested: Sequence[tuple[str, Template]]
) -> Iterator[tuple[str, Change]]:
    for name in old:
        for change in dangerous_changes(old[name], new[name], partial(_exists, account)):
            yield name, change
    yield from moved_parameters(old, new)
    yield from removed_exports(old, new, nested, cache(partial(_importers, account)))


def _importers(account: Account, export: str) -> list[str]:
    """The stacks that import an export; for a nested stack its outermost one, because only that can be deployed.

    CloudFormation does not have an error code for none: "Export 'X' is not imported by any stack.".
    """
    pages = account.client("cloudformation").get_paginator("list_imports").paginate(ExportName=export)
    try:
        names = [name for page in pages for name in page["Imports"]]
    except ClientError as error:
        if "is not imported" in str(error):
            return []
        raise
    return sorted({_outermost(account, name) for name in names})


def _outermost(account: Account, stack: str) -> str:
    found = account.client("cloudformation").describe_stacks(StackName=stack)["Stacks"][0]
    return found["RootId"].split("/")[1] if "RootId" in found else stack


def _exists(account: Account, endpoint: str) -> bool:
    """SageMaker does not have an error code for a missing endpoint."""
    try:
        account.client("sagemaker").describe_endpoint(EndpointName=endpoint)
    except ClientError as error:
        if "Could not find" in str(error):
            return False
        raise
    return True
