"""Changes single lines at random and asks the tests whether they notice: `python -m tools.random_mutants --help`.

It tells whether a test that goes was the only one to notice something::

    git worktree add ../before …; cd ../before      # a checkout of its own, because the files are changed in place
    pytest tests/hosting … --cov --cov-context=test # which tests execute which line, in .coverage
    python -m tools.random_mutants choose --count 200 --seed 40 > mutants.jsonl
    python -m tools.random_mutants judge mutants.jsonl > before.jsonl

Then judge before.jsonl in a checkout of the new state. Each line is looked for by its text, so a file may have moved,
and the test that noticed a mutant before is asked first.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from coverage import CoverageData

ROOT = Path.cwd()
PLACES = ("constructs", "gpu_build", "lambda", "local_aws")
TIMEOUT_SECONDS = 300
HANGS_SECONDS = 120
"""After which a test has noticed a mutant that waits forever; several tests may take longer together."""
SPECIFIC, MOST = 25, 200
"""How many of the tests that execute a line are asked first, those that execute the least, and how many at most."""

UNNOTICED = ("SURVIVED", "OUT OF TIME")

_SWAPPED = {
    ast.Eq: "!=", ast.NotEq: "==", ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip
"""Comparison to the text that replaces it."""


@dataclass(frozen=True)
class Mutant:
    """A changed line.

    Attributes:
        file: its path in the checkout that it was chosen in.
        number: the line's number there, from 1.
        old: the line.
        new: the line after the change.
        by: the test that noticed it, `gone`, `SURVIVED`, or `OUT OF TIME` if its tests took too long to tell; empty
            before it is judged.
    """

    file: str
    number: int
    old: str
    new: str
    by: str = ""


def main() -> int:
    """Run the command; 1 if a mutant was not noticed."""
    parser = argparse.ArgumentParser(prog="random_mutants")
    commands = parser.add_subparsers(dest="command", required=True)
    choose = commands.add_parser("choose", help="print mutants of lines that tests execute")
    choose.add_argument("--count", type=int, default=200)
    choose.add_argument("--seed", type=int, default=0)
    judge = commands.add_parser("judge", help="print for each mutant the first test that notices it")
    judge.add_argument("mutants", type=Path)
    for command in (choose, judge):
        command.add_argument("--coverage", default=".coverage", help="made with --cov-context=test")
    options = parser.parse_args()
    data = CoverageData(options.coverage)
    data.read()
    if options.command == "choose":
        for mutant in _chosen(data, options.count, options.seed):
            print(json.dumps(asdict(mutant)))
        return 0
    mutants = [Mutant(**json.loads(line)) for line in options.mutants.read_text().splitlines()]
    return _judge(mutants, data)


def _chosen(data: CoverageData, count: int, seed: int) -> list[Mutant]:
    """As many mutants of each place and package as its share of the mutants that there are."""
    every = [
        mutant
        for place in PLACES
        for file in sorted((ROOT / place).rglob("*.py"))
        if not file.is_symlink() and not any(each.is_symlink() for each in file.parents)
        for executed in [_tests(data, file)]
        for mutant in mutants_of(str(file.relative_to(ROOT)), file.read_text())
        if executed.get(mutant.number)
    ]
    return sorted(random.Random(seed).sample(every, count), key=lambda each: (each.file, each.number))  # noqa: S311


def mutants_of(file: str, text: str) -> Iterator[Mutant]:
    """Every change of one line that the tool knows: comparisons, `and` and `or`, `not`, booleans and integers."""
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if (change := _change(node, lines)) is not None:
            number, start, end, new = change
            old = lines[number - 1].encode()
            yield Mutant(file, number, old.decode(), (old[:start] + new.encode() + old[end:]).decode())


def _change(node: ast.AST, lines: list[str]) -> tuple[int, int, int, str] | None:
    """The number of the line, the first byte that changes, the one after the last, and the new text."""
    match node:
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            return _between(left, right, f" {_SWAPPED[type(operator)]} ", lines)
        case ast.BoolOp(op=operator, values=[left, right, *_]):
            return _between(left, right, " or " if isinstance(operator, ast.And) else " and ", lines)
        case ast.UnaryOp(op=ast.Not(), operand=operand) if node.lineno == operand.lineno:
            return node.lineno, node.col_offset, operand.col_offset, ""
        case ast.Constant(value=bool(value), end_col_offset=int(end)):
            return node.lineno, node.col_offset, end, str(not value)
        case ast.Constant(value=int(value), end_col_offset=int(end)):
            return node.lineno, node.col_offset, end, str(value + 1)
    return None


def _between(left: ast.expr, right: ast.expr, new: str, lines: list[str]) -> tuple[int, int, int, str] | None:
    """The change of what stands between two operands, unless they are on two lines or in brackets of their own."""
    start, end = left.end_col_offset, right.col_offset
    if left.end_lineno != right.lineno or set(b"()") & set(lines[right.lineno - 1].encode()[start:end]):
        return None
    return right.lineno, start or 0, end, new


def _judge(mutants: Iterable[Mutant], data: CoverageData) -> int:
    outcomes = Counter[str]()
    lines = _lines_of_tests(data)
    for mutant in mutants:
        place = _found(mutant)
        outcome = "gone" if place is None else _outcome(mutant, *place, data, lines)
        outcomes[outcome if outcome in ("gone", *UNNOTICED) else "noticed"] += 1
        print(json.dumps(asdict(replace(mutant, by=outcome))), flush=True)
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items())), file=sys.stderr)
    return 1 if any(outcomes[each] for each in UNNOTICED) else 0


def _found(mutant: Mutant) -> tuple[Path, int] | None:
    """The file and the number of a mutant's line: where it was, or the one place that has it now, indented or not."""
    was = ROOT / mutant.file
    if was.is_file() and was.read_text().splitlines()[mutant.number - 1 : mutant.number] == [mutant.old]:
        return was, mutant.number
    same = [
        (file, number)
        for place in PLACES
        for file in (ROOT / place).rglob("*.py")
        if file.resolve() == file
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if line.strip() == mutant.old.strip()
    ]
    named = [each for each in same if each[0].name == was.name]
    best = named or same
    return best[0] if len(best) == 1 else None


def _outcome(mutant: Mutant, file: Path, number: int, data: CoverageData, lines: Mapping[str, int]) -> str:
    """The first test that notices the changed line: the one that did before, or those that execute the least first."""
    tests = sorted(_tests(data, file).get(number, []), key=lambda each: lines.get(each, 0))
    known = [mutant.by] if Path(mutant.by.partition("::")[0]).is_file() else []
    text = file.read_text()
    changed = text.splitlines(keepends=True)
    line = changed[number - 1]
    changed[number - 1] = line.removesuffix(line.lstrip()) + mutant.new.lstrip() + "\n"
    try:
        file.write_text("".join(changed))
        for batch in (known, tests[:SPECIFIC], tests[SPECIFIC:MOST]):
            if batch and (found := _noticed(batch)):
                break
        else:
            return "SURVIVED"
    finally:
        file.write_text(text)
    # A test that also fails without the change has noticed nothing.
    return "SURVIVED" if "::" in found and _noticed([found]) else found


def _noticed(tests: Sequence[str]) -> str:
    """The first of some tests that fails; empty if none does, or if they are not there any more."""
    options = ["-q", "-x", "-p", "no:cacheprovider", "--tb=no", "--no-header", "-o", f"timeout={HANGS_SECONDS}"]
    command = [sys.executable, "-m", "pytest", *options, *tests]
    try:
        ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        return "OUT OF TIME"
    if ran.returncode == 0 or "ERROR: not found: " in ran.stderr:
        return ""
    failed = [line for line in ran.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0].partition(" ")[2].partition(" - ")[0] if failed else f"exit status {ran.returncode}"


def _lines_of_tests(data: CoverageData) -> dict[str, int]:
    """How much of the library each test executes, in arcs of coverage's database."""
    query = "select context, count(*) from arc join context on context.id = arc.context_id group by context"
    lines = Counter[str]()
    with sqlite3.connect(data.data_filename()) as database:
        for context, count in database.execute(query):
            lines[context.rpartition("|")[0]] += count
    return lines


def _tests(data: CoverageData, file: Path) -> dict[int, list[str]]:
    """By number of a line, the tests that execute it."""
    contexts = data.contexts_by_lineno(str(file))
    return {
        number: sorted({each.rpartition("|")[0] for each in names if "|" in each}) for number, names in contexts.items()
    }


if __name__ == "__main__":
    sys.exit(main())
