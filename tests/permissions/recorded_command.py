"""`python -m tests.permissions.recorded_command FILE ...` is `cdk-triton ...`, and records the calls of its local AWS.

At its end, it writes the faults and the decisions of each account into the file.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.permissions.judging import Decision, Policies, Request, denials
from tests.permissions.recording import Recording, recorder

from cdk_triton.cli import main
from cdk_triton_local import LocalAws

__all__ = ["faults_in"]


def faults_in(file: Path) -> list[str]:
    """Judge what is in a file: the calls that the policies deny, and those that cannot be judged."""
    found: list[str] = []
    for account, recorded in json.loads(file.read_text(encoding="utf-8")).items():
        found += recorded["faults"] + denials([_decision(each) for each in recorded["decisions"]], account)
    return found


def _decision(asked: Mapping[str, Any]) -> Decision:
    request, policies = asked["request"], asked["policies"]
    return Decision(
        asked["principal"],
        Request(request["action"], request["resource"], request["context"], request["owner"]),
        Policies(tuple(policies["identity"]), policies["boundary"], policies["resource"]),
        asked["reason"],
    )


def _run(file: Path) -> None:
    recordings: dict[str, Recording] = {}
    LocalAws.on_call = recorder(recordings)
    try:
        main()
    finally:
        document = {
            account: {
                "faults": [*recording.faults],
                "decisions": [asdict(each) for each in recording.decisions.values()],
            }
            for account, recording in recordings.items()
        }
        file.write_text(json.dumps(document), encoding="utf-8")


if __name__ == "__main__":
    _run(Path(sys.argv.pop(1)))
