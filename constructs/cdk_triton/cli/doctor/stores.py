"""Finds out whether a deployment of this app would overwrite the artifact store of another app."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cdk_triton._wording import listed
from cdk_triton.cli.artifacts.assembly import read_templates, users_of_store
from cdk_triton.cli.doctor.account import Account
from cdk_triton.cli.doctor.answers import Answer, State
from cdk_triton.cli.doctor.templates import deployed_template, is_deployed

__all__ = ["SUBJECT", "artifact_stores"]

SUBJECT = "artifact store"


def artifact_stores(account: Account, app: Path) -> Iterator[Answer]:
    """Compare the app's stores for other apps with the deployed stores of the same names.

    Args:
        account: the account that the app would be deployed to.
        app: the directory of the cloud assembly.

    Raises:
        ConfigurationError: a file of the cloud assembly cannot be read.
        ClientError: CloudFormation rejected a call.
    """
    stores = {name: users_of_store(template) for name, template in read_templates(app, account.id, account.region)}
    stores = {name: users for name, users in stores.items() if users}
    if not stores:
        return
    alone = True
    for name, users in stores.items():
        others = [each for each in sorted(_deployed_users(account, name) - users) if is_deployed(account, each)]
        if others:
            alone = False
            yield Answer(
                subject=SUBJECT,
                state=State.WARNING,
                found=f"the deployed stack {name} also grants permissions to {listed(others)}, which {_are(others)} "
                f"deployed but not in this app; a deployment of {name} by this app removes these permissions, which "
                f"builds and updates of {listed(others)} need",
                fix=f"if another app contains {listed(others)}, let that app deploy {name} with export_prefix=, and "
                "use the store in this app by TritonArtifactStore.from_exports; if this app has renamed or dropped "
                f"{listed(others)}, delete the old stack",
            )
    if alone:
        yield Answer(subject=SUBJECT, state=State.OK, found=f"{listed(sorted(stores))}: used by this app alone")


def _deployed_users(account: Account, stack: str) -> frozenset[str]:
    template = deployed_template(account, stack)
    return frozenset() if template is None else users_of_store(template)


def _are(names: list[str]) -> str:
    return "is" if len(names) == 1 else "are"
