"""Our findings beside the server's verdict: do they agree, and do they speak of the same cause?"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import Finding, ModelRepository
from judging.drafts import Draft
from judging.server import Judge, Verdict

__all__ = ["STRICTER_THAN_THE_JUDGE", "STRICTER_THAN_US", "Comparison", "Tally", "compare"]

FILES = "a null backend opens no file of a model"
BACKEND = "the real backend refuses it, and a null backend takes everything"
ENDPOINT = "the core loads it, and SageMaker's HTTP endpoint refuses every request to a decoupled model"
GPU = "this machine has no GPU; KIND_GPU is taken out of what the judge sees"

STRICTER_THAN_THE_JUDGE: Final[Mapping[str, str]] = {
    **dict.fromkeys(("CT120", "CT123", "CT125", "CT127", "CT130", "CT131", "CT132", "CT133", "CT134", "CT135"), FILES),
    **dict.fromkeys(("CT137", "CT138", "CT139", "CT140", "CT141", "CT142", "CT143", "CT144", "CT145", "CT146"), FILES),
    **dict.fromkeys(("CT147", "CT148", "CT149"), FILES),
    **dict.fromkeys(("CT152", "CT153", "CT154", "CT155", "CT156", "CT157"), FILES),
    "CT113 .* would look for its files in": FILES,
    "CT128": BACKEND,
    "CT210": "the server loads it, and refuses every request",
    "CT215 .* names no target": "the server loads it, and ends with the first answer",
    "CT216": BACKEND,
    "CT217": BACKEND,
    "CT218": BACKEND,
    "CT225": BACKEND,
    "CT228": BACKEND,
    "CT229": BACKEND,
    "CT267 .* would have a state": "the server loads it, and keeps no state",
    "CT268": "the server loads it, and starts no sequence",
    "CT271": GPU,
    "CT275": BACKEND,
    "CT276": "the server loads it, and ends with the first request",
    "CT291": BACKEND,
    "CT340": ENDPOINT,
    **dict.fromkeys(("CT810", "CT811", "CT812"), BACKEND),
    **dict.fromkeys(
        ("CT815", "CT816", "CT817"), "the real backend loads it, and answers no request as its author wants"
    ),
    **dict.fromkeys(("CT820", "CT821", "CT822", "CT823", "CT824", "CT825", "CT826"), FILES),
    "CT828": "the real backend loads it, and the server refuses every request",
    **dict.fromkeys(("CT602", "CT610"), GPU),
    "CT604": BACKEND,
    "CT652": ENDPOINT,
    **dict.fromkeys(("CT841", "CT842", "CT843", "CT844", "CT845", "CT846", "CT848", "CT860", "CT865"), FILES),
    **dict.fromkeys(("CT849", "CT850", "CT851", "CT853", "CT861", "CT862", "CT863"), BACKEND),
}
"""Codes of errors (and words) that are right in production and that the judge cannot confirm, with the reason."""

STRICTER_THAN_US: Final[Mapping[str, str]] = {
    r"unable to find .*backend library": "an image may have backends that the judge does not have",
    r"unable to find 'libtritonrepoagent_": "an image may have repository agents that the judge does not have",
    r"unable to load shared library": "what the field `runtime` names is not read here",
}
"""What the judge says where it refuses what production may well serve, with the reason."""

COMPLETE_A_SIDE = ("onnxruntime", "openvino")  # all inputs or all outputs, where the configuration has none
NEVER_COMPLETE = ("fil", "identity", "python", "pytorch", None)  # our Python models do not; None: an ensemble
COMPLETE_NO_TENSOR = (*NEVER_COMPLETE, *COMPLETE_A_SIDE)

_MISSING_TENSOR = re.compile(r"(?:to|from) non-existing (input|output) .* in model (\S+)")
_UNKNOWN_SOURCE = re.compile(r"unknown source input name '[^']*' for (\S+)")
_OPEN_TENSOR = re.compile(r"model (?:input|output) .*must specify '(?:data_type|dims)' for (\S+)")
_SCALAR = re.compile(r"cannot have empty reshape for non-batching model .* for ([^\s;]+)")
_OTHER_SHAPE = re.compile(
    r"inconsistent shape: (\S+) is inferred from model (\S+) while (\S+) is inferred from model (\S+)"
)

QUOTE: Final = 4
"""Words in a row that a finding and the server must have in common to speak of the same cause."""


@dataclass(frozen=True)
class Comparison:
    """What both said of a repository.

    Attributes:
        draft: the repository.
        repository: the same, as we read it.
        findings: all of our findings.
        verdict: the server's.
    """

    draft: Draft
    repository: ModelRepository
    findings: tuple[Finding, ...]
    verdict: Verdict

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings for which the judge should refuse the repository."""
        return tuple(f for f in self.findings if f.severity == "error" and _why_stricter(f) is None)

    @property
    def causes(self) -> tuple[str, ...]:
        """What the server said was wrong."""
        return tuple(_causes(self.verdict.said))

    @property
    def excuse(self) -> str | None:
        """Why a refusal proves nothing, or None."""
        said = "\n".join(self.causes)
        if any(_speaks_of(finding, said) for finding in self.errors):
            return None
        stricter = (why for finding in self.findings if (why := _why_stricter(finding)) is not None)
        if why := next(stricter, None):
            return f"production refuses it earlier: {why}"
        if any(self._is_completed(*found) for found in _MISSING_TENSOR.findall(said)):
            return "the real backend completes inputs and outputs"
        if any(self._is_completed("input", model) for model in _UNKNOWN_SOURCE.findall(said)):
            return "the real backend completes inputs"
        if any(self._backend(model) not in COMPLETE_NO_TENSOR for model in _OPEN_TENSOR.findall(said)):
            return "the real backend completes types and shapes"
        if any(self._completes_batch(model) for model in _SCALAR.findall(said)) or any(
            self._may_batch(*found) for found in _OTHER_SHAPE.findall(said)
        ):
            return "the real backend completes max_batch_size"
        return next((why for words, why in STRICTER_THAN_US.items() if re.search(words, said)), None)

    def _backend(self, model: str) -> str | None:
        """What runs a model; None for an ensemble."""
        found = self.repository.model(model)
        return None if found is None else found.backend_name

    def _is_completed(self, side: str, model: str) -> bool:
        """Whether the real backend of a step may know inputs or outputs that the configuration does not say."""
        config, backend = self.draft.configs[model], self._backend(model)
        listed = config.input if side == "input" else config.output
        return not listed if backend in COMPLETE_A_SIDE else backend not in COMPLETE_NO_TENSOR

    def _may_batch(self, shape: str, model: str, other_shape: str, other_model: str) -> bool:
        """Whether a dimension for the batch, which only the real backend knows of, would make two shapes fit."""
        shorter, longer = sorted(((shape.count(","), model), (other_shape.count(","), other_model)))
        return longer[0] - shorter[0] == 1 and self._completes_batch(shorter[1])

    def _completes_batch(self, model: str) -> bool:
        """Whether the real backend of a model that does not batch may make it one that does."""
        config, backend = self.draft.configs[model], self._backend(model)
        if backend == "onnxruntime":  # together with inputs or outputs
            return config.max_batch_size == 0 and not (config.input and config.output)
        return config.max_batch_size == 0 and backend not in NEVER_COMPLETE

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
        # A server that crashes says nothing.
        if self.causes and not any(_speaks_of(finding, "\n".join(self.causes)) for finding in self.errors):
            return "the checks and the server speak of different causes"
        return None

    def __str__(self) -> str:
        """Everything that a person needs to find out who is right."""
        ours = [str(finding) for finding in self.findings] or ["nothing"]
        theirs = ["it loads"] if self.verdict.loaded else self.causes or [self.verdict.said]
        return "\n".join(
            [f"{self.disagreement}\nwe say:", *ours, "the server says:", *theirs, "the repository:", str(self.draft)]
        )


def compare(draft: Draft, directory: Path, judge: Judge, platform: ServingPlatform | None = None) -> Comparison:
    """Write the repository into `directory`, which is emptied first, and ask both; the server has no GPU."""
    shutil.rmtree(directory, ignore_errors=True)
    ours, theirs = directory / "repository", directory / "judged"
    draft.write(ours)
    repository = ModelRepository.from_directory(ours)
    findings = repository.check(platform=platform, default_model=draft.entry)
    if (changed := draft.for_the_judge()) is not None:
        changed.write(theirs)
    verdict = judge(ours if changed is None else theirs, [draft.entry])
    return Comparison(draft, repository, findings, verdict)


def _causes(said: str) -> Iterator[str]:
    """The lines with errors, without time and place."""
    for line in said.split("\n"):
        if found := re.match(r"E\d{4} \S+ \d+ \S+\] ?\"?(.*?)\"?$", line):
            if "CudaDriverHelper" not in line:  # on every machine without a GPU
                yield found[1]
        elif re.match(r"error: |terminate called|  what\(\)|\[libprotobuf ERROR", line):
            yield line


def _why_stricter(finding: Finding) -> str | None:
    """Why the judge does not confirm an error, or None if it should."""
    said = f"{finding.code} {finding.message}"
    if finding.severity != "error":
        return None
    return next((why for words, why in STRICTER_THAN_THE_JUDGE.items() if re.match(words, said)), None)


def _speaks_of(finding: Finding, said: str) -> bool:
    """Whether the message has enough words in a row in common with what the server said, or names its exception."""
    if crash := re.search(r"terminate called after throwing an instance of '(.*)'", said):
        return crash[1] in finding.message
    ours = _runs(finding.message.replace("\n", ""))
    return any(not ours.isdisjoint(_runs(line)) for line in said.split("\n"))


def _runs(line: str) -> set[tuple[str, ...]]:
    # The server writes control characters as escapes, and ends its sentences otherwise.
    plain = re.sub(r"\\u[0-9A-F]{4}|\\[bfnrt]|[^ -~]", "", line)
    words = [word.rstrip(".,:;") for word in plain.split()]
    return set(zip(*(words[start:] for start in range(QUOTE)), strict=False))


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
