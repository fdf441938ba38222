"""The line of `requirements.txt` that installs this version of the library again."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.metadata import Distribution, distribution

__all__ = ["Requirement", "requirement"]

_NAME = "cdk-triton[local]"


@dataclass(frozen=True)
class Requirement:
    """How pip installs the library.

    Attributes:
        lines: the lines of `requirements.txt`.
        note: what the project's README must mention about the installation.
    """

    lines: str
    note: str


def requirement(installed: Distribution | None = None) -> Requirement:
    """The requirement for the installed library, from the place that it was installed from.

    pip records the place of an installation that did not come from an index: "Recording the Direct URL Origin of
    installed distributions" (https://packaging.python.org/en/latest/specifications/direct-url/).
    """
    installed = installed or distribution("cdk-triton")
    recorded = json.loads(installed.read_text("direct_url.json") or "{}")
    url, version = recorded.get("url"), installed.version
    if url is None:
        note = "`requirements.txt` takes cdk-triton from the package index that pip is configured with."
        return Requirement(f"{_NAME}=={version}", note)
    if "vcs_info" in recorded:
        origin = f"{recorded['vcs_info']['vcs']}+{url}@{recorded['vcs_info']['commit_id']}"
        return Requirement(
            f"# Version {version}.\n{_NAME} @ {origin}", f"`requirements.txt` takes cdk-triton from {origin}."
        )
    note = (
        "cdk-triton is not in a public package index. `requirements.txt` takes it from a path of the machine on which\n"
        "`cdk-triton init` ran. For other machines, write a Git address, or upload a wheel to your own index."
    )
    comment = f"# Version {version}, from a path of the machine on which `cdk-triton init` ran."
    return Requirement(f"{comment}\n{_NAME} @ {url}", note)
