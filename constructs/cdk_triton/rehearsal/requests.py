"""The golden requests of a repository, each with what its answer is compared with.

They are read one after the other, so that memory does not grow with their number.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdk_triton.artifacts.recipes.parity import TOLERANCES
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from cdk_triton.rehearsal.files import Golden
    from cdk_triton.triton import ModelRepository
    from cdk_triton.triton.rehearsal import GoldenRequest, Tolerance

__all__ = ["MAX_BYTES", "Asked", "golden_requests", "request_name"]

MAX_BYTES: Final = 100_000_000
"""The most that the bodies of the requests and of the expected answers of a repository may have together."""


class Asked(NamedTuple):
    """A request of a rehearsal, and what its answer is compared with.

    Attributes:
        name: how messages call it.
        request: its body.
        comparison: the document of the comparison; see `build_program.rehearsal.comparison`.
        expected: the body of the expected answer, if there is one.
        private: whether its text stays out of messages.
    """

    name: str
    request: Golden
    comparison: Mapping[str, Any] = {"how": "any"}
    expected: Golden | None = None
    private: bool = True


def golden_requests(repository: ModelRepository) -> Iterator[Asked]:
    """The golden requests of a repository; none without a rehearsal.

    Raises:
        ConfigurationError: a file cannot be read, or all of them together are too large.
    """
    rehearsal = repository.rehearsal
    default, size = coarsest_tolerance(repository), 0
    for each in () if rehearsal is None else rehearsal.requests:
        asked = _asked(each, repository.root, default)
        size += len(asked.request.body) + len(asked.expected.body if asked.expected else b"")
        if size > MAX_BYTES:
            raise ConfigurationError(
                f"the golden requests and expected answers of {repository.root} have more than {MAX_BYTES / 1e6:,.0f} "
                "MB together, as the server takes and returns them: keep the requests that show most"
            )
        yield asked


def request_name(golden: GoldenRequest, root: Path) -> str:
    """How messages call a request: its path from the repository, which is the same on every machine."""
    return Path(os.path.relpath(root / golden.request, root)).as_posix()


def coarsest_tolerance(repository: ModelRepository) -> Tolerance:
    """The tolerance of the coarsest precision of the recipes; that of FP32 without one."""
    precisions: Iterable[str] = (getattr(each, "precision", "fp32") for each in repository.recipes)
    found = [TOLERANCES["fp32"], *(TOLERANCES[each] for each in precisions if each in TOLERANCES)]
    return max(found, key=lambda each: (each.relative, each.absolute))


def _asked(golden: GoldenRequest, root: Path, default: Tolerance) -> Asked:
    from cdk_triton.rehearsal.files import golden_answer, golden_request  # numpy, which few syntheses need

    expected = None if golden.expect is None else golden_answer(root / golden.expect, top1=golden.top1)
    request = golden_request(root / golden.request)
    return Asked(request_name(golden, root), request, _comparison(golden, default), expected)


def _comparison(golden: GoldenRequest, default: Tolerance) -> Mapping[str, Any]:
    if golden.label is not None:
        return {"how": "label", "label": golden.label}
    if golden.expect is None:
        return {"how": "any"}
    if golden.cosine is not None:
        return {"how": "cosine", "least": float(golden.cosine)}
    if golden.top1:
        return {"how": "top1"}
    tolerance = golden.tolerance or default
    return {"how": "tolerance", "absolute": tolerance.absolute, "relative": tolerance.relative}
