"""Our findings beside the server's verdict: do they agree, and do they speak of the same cause?"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cdk_triton.triton import Finding, ModelRepository
from judging.drafts import Draft
from judging.server import Judge, Verdict

__all__ = ["STRICTER_THAN_THE_JUDGE", "STRICTER_THAN_US", "Comparison", "Tally", "compare"]

STRICTER_THAN_THE_JUDGE: Final[Mapping[str, str]] = {}
"""Codes of errors that are right in production and that the judge cannot confirm, with the reason."""

STRICTER_THAN_US: Final[Mapping[str, str]] = {
    r"unable to find backend library": "an image may have backends that the judge does not have",
}
"""What the judge says where it refuses what production may well serve, with the reason."""

QUOTE: Final = 4
"""Words in a row that a finding and the server must have in common to speak of the same cause."""


@dataclass(frozen=True)
class Comparison:
    """What both said of a repository.

    Attributes:
        draft: the repository.
        findings: all of our findings.
        verdict: the server's.
    """

    draft: Draft
    findings: tuple[Finding, ...]
    verdict: Verdict

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings for which the server should refuse the repository."""
        return tuple(f for f in self.findings if f.severity == "error" and f.code not in STRICTER_THAN_THE_JUDGE)

    @property
    def causes(self) -> tuple[str, ...]:
        """What the server said was wrong."""
        return tuple(_causes(self.verdict.said))

    @property
    def excuse(self) -> str | None:
        """Why a refusal proves nothing, or None."""
        said = "\n".join(self.causes)
        return next((why for words, why in STRICTER_THAN_US.items() if re.search(words, said)), None)

    @property
    def disagreement(self) -> str | None:
        """What is wrong with the checks, or None."""
        if any(finding.code == "CT001" for finding in self.findings):
            return "a rule crashed"
        if self.verdict.loaded:
            return "the server loads it, and the checks find an error" if self.errors else None
        if self.excuse is not None:
            return None
        if not self.errors:
            return "the server refuses it, and the checks find no error"
        said = " ".join(self.causes).split()
        if not any(_speaks_of(finding, said) for finding in self.errors):
            return "the checks and the server speak of different causes"
        return None

    def __str__(self) -> str:
        """Everything that a person needs to find out who is right."""
        ours = [str(finding) for finding in self.findings] or ["nothing"]
        theirs = ["it loads"] if self.verdict.loaded else self.causes or [self.verdict.said]
        return "\n".join(
            [f"{self.disagreement}\nwe say:", *ours, "the server says:", *theirs, "the repository:", str(self.draft)]
        )


def compare(draft: Draft, root: Path, judge: Judge) -> Comparison:
    """Write the repository to `root`, which is emptied first, and ask both."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    draft.write(root)
    findings = ModelRepository.from_directory(root).check(default_model=draft.entry)
    return Comparison(draft, findings, judge(root, [draft.entry]))


def _causes(said: str) -> Iterator[str]:
    """The lines with errors, without time and place."""
    for line in said.splitlines():
        if found := re.match(r"E\d{4} \S+ \d+ \S+\] ?\"?(.*?)\"?$", line):
            if "CudaDriverHelper" not in line:  # on every machine without a GPU
                yield found[1]
        elif re.match(r"error: |terminate called|  what\(\)|\[libprotobuf ERROR", line):
            yield line


def _speaks_of(finding: Finding, said: list[str]) -> bool:
    """Whether the message has enough words in a row in common with what the server said."""
    runs = {tuple(run) for run in zip(*(said[i:] for i in range(QUOTE)), strict=False)}
    words = finding.message.split()
    return any(tuple(run) in runs for run in zip(*(words[i:] for i in range(QUOTE)), strict=False))


@dataclass
class Tally:
    """Counts over many comparisons."""

    verdicts: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)

    def add(self, comparison: Comparison) -> None:
        """Count one."""
        if comparison.disagreement is not None:
            self.verdicts[f"DISAGREE: {comparison.disagreement}"] += 1
        elif comparison.verdict.loaded:
            self.verdicts["loaded, and no error found"] += 1
        elif comparison.excuse is not None:
            self.verdicts[f"left out: {comparison.excuse}"] += 1
        else:
            self.verdicts["refused, and the cause found"] += 1
        self.codes.update({f"{finding.code} {finding.severity}" for finding in comparison.findings})

    def lines(self) -> Iterator[str]:
        """The table."""
        yield from (f"{count:7} {what}" for what, count in sorted(self.verdicts.items()))
        yield "repositories per code:"
        yield from (f"{count:7} {code}" for code, count in sorted(self.codes.items()))
