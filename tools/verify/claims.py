"""The claims that only AWS can confirm, from docs/not_verified.toml."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Claim", "Need", "claims"]

CLAIMS = Path(__file__).parents[2] / "docs" / "not_verified.toml"


@dataclass(frozen=True)
class Need:
    """Why a person has to look, and what the experiment of the person takes.

    Attributes:
        reason: what it needs that no program here provides.
        dollars: what it costs, about.
        minutes: how long it takes, about.
    """

    reason: str
    dollars: float
    minutes: int


@dataclass(frozen=True)
class Claim:
    """A claim with its source, and what would confirm it.

    Attributes:
        area: the part of the library.
        section: the subject.
        claim: the claim, in Markdown.
        known_from: its source.
        how_to_check: what decides it.
        experiment: `<experiment>/<part>`, or None if a person has to look.
        need: what a person needs; None with an experiment.
        judged_here: the command that judges it on this machine, with judges that are not this library's own. It does
            not confirm the claim on AWS.
    """

    area: str
    section: str
    claim: str
    known_from: str
    how_to_check: str
    experiment: str | None
    need: Need | None
    judged_here: str | None


def claims() -> list[Claim]:
    """All claims, in the file's order.

    Raises:
        ValueError: a claim has both an experiment and a need, or neither.
    """
    document = tomllib.loads(CLAIMS.read_text(encoding="utf-8"))
    needs = {name: Need(**each) for name, each in document["needs"].items()}
    found = []
    for row in document["claim"]:
        if ("experiment" in row) == ("needs" in row):
            raise ValueError(f"the claim {row['claim']!r} has to have either an `experiment` or one of the `needs`")
        found.append(
            Claim(
                area=row["area"],
                section=row["section"],
                claim=row["claim"],
                known_from=row["known_from"],
                how_to_check=row["how_to_check"],
                experiment=row.get("experiment"),
                need=needs[row["needs"]] if "needs" in row else None,
                judged_here=row.get("judged_here"),
            )
        )
    return found
