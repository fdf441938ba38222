"""The commands: list, plan, run and clean."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError
from tools.verify.claims import claims
from tools.verify.experiment import Observation, experiment, names
from tools.verify.report import report
from tools.verify.trial import Interruptions, Place, Trial, place_of

from cdk_triton.errors import CdkTritonError


def listing() -> str:
    """All claims: what decides each, and what that takes."""
    lines = []
    rows = claims()
    for row in rows:
        by = f"experiment {row.experiment}" if row.experiment else "by hand"
        takes = "" if row.need is None else f" (about {row.need.minutes} minutes, {row.need.dollars:g} USD)"
        here = f"; judged here by: {row.judged_here}" if row.judged_here else ""
        lines.append(f"{row.section}: {row.claim}\n    {by}{takes}{here}")
        lines.append(f"    {row.how_to_check if row.need is None else f'{row.how_to_check}; {row.need.reason}'}")
    in_code = sum(row.experiment is not None for row in rows)
    judged = sum(row.judged_here is not None for row in rows)
    lines.append(
        f"{len(rows)} claims: {in_code} are decided by an experiment in code, {len(rows) - in_code} by hand; "
        f"{judged} are also judged on this machine"
    )
    return "\n".join(lines)


def plan(chosen: Sequence[str]) -> str:
    """What the experiments do, decide, take and cost."""
    lines = []
    decided = {row.experiment: row.claim for row in claims() if row.experiment}
    for name in chosen:
        each = experiment(name)
        rest = f", then {each.rest.days} days of rest" if each.rest else ""
        lines.append(f"{name}: {each.minutes} minutes{rest}, at most {each.dollars:g} USD ({each.spends})")
        lines += [f"    {part}: {decided[f'{name}/{part}']}" for part in each.parts]
    total = sum(experiment(name).dollars for name in chosen)
    lines.append(f"together: {sum(experiment(name).minutes for name in chosen)} minutes, at most {total:g} USD")
    return "\n".join(lines)


def observations(name: str, place: Place, interruptions: Interruptions) -> Iterator[tuple[str, Observation]]:
    """Run an experiment and clean up after it; one that rests is left alone until its time has come."""
    with Trial(name, experiment(name), place) as trial:
        yield from _observations(name, trial, interruptions)


def _observations(name: str, trial: Trial, interruptions: Interruptions) -> Iterator[tuple[str, Observation]]:
    each = experiment(name)
    rested = trial.deployed_since() if each.rest else None
    if each.rest and rested is None:
        trial.deploy()
        print(f"{name}: deployed; run it again in {each.rest.days} days, or remove it with `clean`")
        return
    if rested is not None and rested < each.rest and not trial.place.is_local:
        print(f"{name}: it was deployed {rested.days} days ago; run it again in {(each.rest - rested).days + 1} days")
        return
    try:
        for observation in each.observe(trial):
            print(f"{name}/{observation.part}: {observation.holds}: {observation.seen}", flush=True)
            yield name, observation
    finally:
        with interruptions.put_off():
            trial.clean()


def run(chosen: Sequence[str], place: Place, interruptions: Interruptions, file: Path | None) -> int:
    """Run experiments one after the other, and write the report of those that ended, even if a later one fails."""
    found: list[tuple[str, Observation]] = []
    status = 0
    for name in chosen:
        try:
            for each in observations(name, place, interruptions):
                found.append(each)
        except KeyboardInterrupt:
            status = 130
            break
        except (CdkTritonError, ClientError, BotoCoreError) as error:
            print(f"{name}: failed: {error}", file=sys.stderr)
            status = 1
    text = report(place, found, claims())
    print(f"\n{text}")
    if file is not None:
        file.write_text(text, encoding="utf-8")
    return status or int(any(observation.holds is False for _, observation in found))


def main() -> int:
    """Run a command; returns 1 if a claim does not hold or an experiment failed, 2 for unusable arguments."""
    parser = argparse.ArgumentParser(prog="python -m tools.verify", description="Confirms claims of the guide on AWS.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="all claims, with what decides them")
    for command, text in (
        ("plan", "what experiments decide, take and cost"),
        ("run", "run experiments, and remove what they created"),
        ("clean", "remove what an experiment left behind that was killed"),
    ):
        each = commands.add_parser(command, help=text)
        each.add_argument("experiment", nargs="*" if command == "plan" else "+", choices=[*names(), []])
        if command != "plan":
            each.add_argument("--test-account", required=True, metavar="ID", help="the account that you keep for tests")
        if command == "run":
            each.add_argument("--report", type=Path, metavar="FILE", help="where the report goes too")
    arguments = parser.parse_args()
    if arguments.command == "list":
        print(listing())
        return 0
    chosen = arguments.experiment or names()
    if arguments.command == "plan":
        print(plan(chosen))
        return 0
    try:
        place = place_of(arguments.test_account)
    except (ValueError, BotoCoreError, ClientError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    with Interruptions() as interruptions:
        if arguments.command == "run":
            print(plan(chosen))
            return run(chosen, place, interruptions, arguments.report)
        for name in chosen:
            with Trial(name, experiment(name), place) as trial, interruptions.put_off():
                trial.clean()
    return 0


if __name__ == "__main__":
    sys.exit(main())
