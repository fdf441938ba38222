"""The commands: list, plan, run and clean."""

from __future__ import annotations

import os
import sys
import tempfile
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError
from tools.verify.claims import Claim, claims
from tools.verify.experiment import Observation, experiment, names
from tools.verify.report import report
from tools.verify.trial import Interruptions, Place, Trial, place_of

from cdk_triton.errors import CdkTritonError


def listing() -> str:
    """All claims: where each is from, what decides it, and what that takes."""
    lines = []
    rows = claims()
    for row in rows:
        lines += [f"{row.section}: {row.claim}", f"    known from: {row.known_from}", f"    {_decider(row)}"]
        if row.judged_here:
            lines.append(f"    judged here by: {row.judged_here}")
    in_code = sum(row.experiment is not None for row in rows)
    judged = sum(row.judged_here is not None for row in rows)
    lines.append(
        f"{len(rows)} claims: {in_code} are decided by an experiment in code, {len(rows) - in_code} by hand; "
        f"{judged} are also judged on this machine"
    )
    return "\n".join(lines)


def _decider(row: Claim) -> str:
    if row.need is not None:
        takes = f"about {row.need.minutes} minutes, {row.need.dollars:g} USD"
        return f"by hand ({takes}): {row.how_to_check}; {row.need.reason}"
    each = experiment(str(row.experiment).partition("/")[0])
    return f"experiment {row.experiment} (all parts: {each.minutes} minutes, {each.dollars:g} USD): {row.how_to_check}"


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

    def observe(name: str) -> None:
        for each in observations(name, place, interruptions):
            found.append(each)  # also if a later one fails

    status = _of_each(chosen, observe)
    text = report(place, found, claims())
    print(f"\n{text}")
    if file is not None:
        file.write_text(text, encoding="utf-8")
    return status or int(any(observation.holds is False for _, observation in found))


def clean(chosen: Sequence[str], place: Place, interruptions: Interruptions) -> int:
    """Remove what experiments left behind."""

    def remove(name: str) -> None:
        with Trial(name, experiment(name), place) as trial, interruptions.put_off():
            trial.clean()

    return _of_each(chosen, remove)


def _of_each(chosen: Sequence[str], action: Callable[[str], None]) -> int:
    """Do something with each experiment, also after one that failed; returns the status of the command."""
    status = 0
    for name in chosen:
        try:
            action(name)
        except KeyboardInterrupt:
            return 130
        except (CdkTritonError, ClientError, BotoCoreError) as error:
            print(f"{name}: failed: {error}", file=sys.stderr)
            status = 1
    return status


def _name(text: str) -> str:
    if text not in names():
        raise ArgumentTypeError(f"there is no experiment {text!r}; there are {', '.join(names())}")
    return text


def _writable(text: str) -> Path:
    """A file, also a new one, in a directory that exists, so that no report is lost at the end."""
    if not Path(text).parent.is_dir():
        raise ArgumentTypeError(f"{text} cannot be written; create the directory {Path(text).parent} first")
    if Path(text).is_dir():
        raise ArgumentTypeError(f"{text} cannot be written, because it is a directory; name a file in it")
    return Path(text)


@contextmanager
def _own_temporary_files() -> Iterator[None]:
    """Remove what the runtime of the CDK in this process leaves behind if Ctrl-C in a terminal ends it."""
    with tempfile.TemporaryDirectory(prefix="cdk-triton-verify-", ignore_cleanup_errors=True) as directory:
        before = os.environ.get("TMPDIR")
        os.environ["TMPDIR"] = directory
        try:
            yield
        finally:
            del os.environ["TMPDIR"]
            os.environ.update({} if before is None else {"TMPDIR": before})


@_own_temporary_files()
def main() -> int:
    """Run a command; returns 1 if a claim does not hold or an experiment failed, 2 for unusable arguments."""
    parser = ArgumentParser(prog="python -m tools.verify", description="Confirms claims of the guide on AWS.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="all claims, with what decides them")
    for command, text in (
        ("plan", "what experiments decide, take and cost"),
        ("run", "run experiments, and remove what they created"),
        ("clean", "remove what an experiment left behind that was killed"),
    ):
        each = commands.add_parser(command, help=text)
        each.add_argument("experiment", nargs="*" if command == "plan" else "+", type=_name)
        if command != "plan":
            each.add_argument("--test-account", required=True, metavar="ID", help="the account that you keep for tests")
        if command == "run":
            each.add_argument("--report", type=_writable, metavar="FILE", help="where the report goes too")
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
        return clean(chosen, place, interruptions)


if __name__ == "__main__":
    sys.exit(main())
