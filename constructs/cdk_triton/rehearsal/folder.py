"""The input folder of a rehearsal: `rehearsal.json`, and a file for each request and each expected answer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdk_triton.artifacts.recipes.parity import TOLERANCES
from cdk_triton.errors import ConfigurationError
from cdk_triton.rehearsal.files import MAX_BYTES, Golden, golden_answer, golden_request
from cdk_triton.sagemaker.timeouts import start_timeout_seconds
from cdk_triton.triton.rehearsal import Tolerance

if TYPE_CHECKING:
    from cdk_triton.triton import Mode, ModelRepository
    from cdk_triton.triton.rehearsal import GoldenRequest

__all__ = ["Asked", "golden_requests", "write_folder"]

_SCHEMA: Final = 1


class Asked(NamedTuple):
    """A request of a rehearsal, and what its answer is compared with.

    Attributes:
        name: how messages call it.
        request: its body.
        comparison: the document of the comparison; see `build_program.rehearsal.comparison`.
        expected: the body of the expected answer, if there is one.
    """

    name: str
    request: Golden
    comparison: Mapping[str, Any] = {"how": "any"}
    expected: Golden | None = None


def golden_requests(repository: ModelRepository) -> list[Asked]:
    """The golden requests of a repository; empty without a rehearsal.

    Raises:
        ConfigurationError: a file cannot be read, or all of them together are too large.
    """
    rehearsal = repository.rehearsal
    if rehearsal is None:
        return []
    default = _coarsest(repository)
    asked = [_asked(each, repository.root, default) for each in rehearsal.requests]
    size = sum(len(each.request.body) + len(each.expected.body if each.expected else b"") for each in asked)
    if size > MAX_BYTES:
        raise ConfigurationError(
            f"the golden files of {repository.root} have {size / 1e6:,.0f} MB together, but at most "
            f"{MAX_BYTES / 1e6:,.0f} MB are possible: keep the requests that show most"
        )
    return asked


def write_folder(
    folder: Path,
    repository: ModelRepository,
    mode: Mode,
    environment: Mapping[str, str],
    requests: Sequence[Asked],
    *,
    keep_answers: bool = False,
) -> None:
    """Write the files of a rehearsal into a folder that exists.

    Args:
        folder: the folder.
        repository: the repository, which is not written.
        mode: how an endpoint serves it.
        environment: the variables of the container.
        requests: the requests.
        keep_answers: whether the rehearsal writes the answers into its output.
    """
    rows = [_row(folder, number, each) for number, each in enumerate(requests)]
    document = {
        "schema": _SCHEMA,
        "repository": repository.name,
        "mode": mode,
        "environment": dict(environment),
        "load_timeout_seconds": _load_timeout(repository),
        "requests": rows,
        "keep_answers": keep_answers,
    }
    (folder / "rehearsal.json").write_text(json.dumps(document), encoding="utf-8")


def _load_timeout(repository: ModelRepository) -> float:
    given = None if repository.rehearsal is None else repository.rehearsal.load_timeout
    return float(start_timeout_seconds(repository.size)) if given is None else given


def _row(folder: Path, number: int, asked: Asked) -> dict[str, Any]:
    (folder / f"request{number}").write_bytes(asked.request.body)
    if asked.expected is not None:
        (folder / f"expected{number}").write_bytes(asked.expected.body)
    return {
        "name": asked.name,
        "body": f"request{number}",
        "content_type": asked.request.content_type,
        "comparison": dict(asked.comparison),
        "expected": None if asked.expected is None else f"expected{number}",
        "expected_type": "" if asked.expected is None else asked.expected.content_type,
    }


def _asked(golden: GoldenRequest, root: Path, default: Tolerance) -> Asked:
    expected = None if golden.expect is None else golden_answer(root / golden.expect)
    return Asked(str(golden.request), golden_request(root / golden.request), _comparison(golden, default), expected)


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


def _coarsest(repository: ModelRepository) -> Tolerance:
    """The tolerance of the coarsest precision of the recipes; that of FP32 without one."""
    precisions: Iterable[str] = (getattr(each, "precision", "fp32") for each in repository.recipes)
    found = [TOLERANCES["fp32"], *(TOLERANCES[each] for each in precisions if each in TOLERANCES)]
    return max(found, key=lambda each: (each.relative, each.absolute))
