"""The report of experiments, in Markdown: what was seen, where, when, and with which version."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import version

from tools.verify.claims import Claim
from tools.verify.experiment import Observation
from tools.verify.trial import Place

__all__ = ["report"]

_RESULTS: Mapping[bool | None, str] = {True: "holds", False: "**does not hold**", None: "undecided"}


def report(place: Place, observations: Iterable[tuple[str, Observation]], claims: Iterable[Claim]) -> str:
    """The report.

    Args:
        place: where the experiments ran. The report has no number of the account.
        observations: the names of experiments, with what they have seen.
        claims: all claims.
    """
    by_part = {claim.experiment: claim for claim in claims if claim.experiment}
    where = "the local AWS: a rehearsal of the experiments, which confirms nothing" if place.is_local else "AWS"
    lines = [
        f"Run on {where}, {place.region}, {datetime.now(UTC):%Y-%m-%d}, with cdk-triton {version('cdk-triton')} "
        f"({_commit()}).",
        "",
        "| claim | experiment | result | seen |",
        "|---|---|---|---|",
    ]
    for name, observation in observations:
        part = f"{name}/{observation.part}"
        seen = " ".join(observation.seen.replace(place.account, "ACCOUNT").split())  # messages of services name it
        cells = [by_part[part].claim, f"`{part}`", _RESULTS[observation.holds], seen]
        lines.append(f"| {' | '.join(each.replace('|', chr(92) + '|') for each in cells)} |")
    return "\n".join(lines) + "\n"


def _commit() -> str:
    found = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True)  # noqa: S607
    return f"commit {found.stdout.strip()}" if found.returncode == 0 else "no commit"
