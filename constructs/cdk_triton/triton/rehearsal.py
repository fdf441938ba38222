"""Golden requests: what the server that will serve a repository is asked before it serves it.

`[rehearsal]` of `cdk-triton.toml` lists them for every reader of the repository:

    [[rehearsal.requests]]
    request = "golden/cat.json"
    expect = "golden/cat.npz"

    [[rehearsal.requests]]
    request = "golden/dog.npz"
    label = "beagle"
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, Final

from cdk_triton._arguments import has_attribute, listed, one, require_type, several
from cdk_triton._tokens import reject_token
from cdk_triton._wording import did_you_mean
from cdk_triton.errors import ConfigurationError, RepositoryError

__all__ = ["GOLDEN_DIRECTORY", "GoldenRequest", "Rehearsal", "Tolerance", "rehearsal_in"]

GOLDEN_DIRECTORY: Final = "golden"
"""The directory of a repository for files of golden requests. It is not a model, and the archive does not have it."""

_LOAD_TIMEOUT_SECONDS: Final = 600.0
_MOST_LOAD_SECONDS: Final = 3600.0  # SageMaker's limit for ContainerStartupHealthCheckTimeoutInSeconds


@dataclass(frozen=True)
class Tolerance:
    """How far an output may differ from the expected one.

    The largest difference within a tensor may be at most `absolute + relative * (largest expected magnitude)`. The
    magnitude is that of the whole tensor, because a value near 0 may be the sum of large values, with a large relative
    error.

    Attributes:
        absolute: the absolute difference in the output's unit, at least 0.
        relative: a fraction of the largest magnitude, at least 0; 0.01 is 1 %.

    Raises:
        ConfigurationError: a value is negative, infinite or not a number.
    """

    absolute: float
    relative: float

    def __post_init__(self) -> None:
        """Check the values."""
        for name in ("absolute", "relative"):
            value: object = getattr(self, name)
            reject_token(value, f"the {name} tolerance")
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
                raise ConfigurationError(f"the {name} tolerance is {value!r} but must be a finite number of at least 0")
            object.__setattr__(self, name, float(value))  # 0 and 0.0 are one tolerance, and one artifact key


_FILE: Final = one(lambda value: isinstance(value, str | Path), "name a file, such as 'golden/cat.json'")
_TOLERANCE: Final = one(
    lambda value: isinstance(value, Tolerance), "write Tolerance(absolute=…, relative=…), or omit it"
)
_LABEL: Final = one(lambda value: isinstance(value, str) and bool(value), "write the label as text in quotes")
_FLAG: Final = one(lambda value: isinstance(value, bool), "write True or False")
_REQUESTS: Final = several(
    has_attribute("request", "expect"), "give a list, such as [GoldenRequest('golden/cat.json', expect='cat.npz')]"
)


@dataclass(frozen=True)
class GoldenRequest:
    """A request whose answer is known.

    Without `expect` and `label`, any answer without an error passes.

    Attributes:
        request: the file of the request: JSON as `cdk-triton invoke --data` takes it, or `.npz` with an array for each
            input. A path that is not absolute begins at the repository.
        expect: the file of the expected outputs: `.npz` with an array for each output, as `cdk-triton golden record`
            writes it, or the JSON of an answer. Outputs that it does not have are not compared.
        tolerance: how far outputs of floats may differ; other outputs have to be equal. By default the tolerance of the
            coarsest precision of the repository's recipes, or that of FP32 without recipes.
        cosine: instead of a tolerance, the smallest cosine, from -1 to 1, between an output of floats and the expected
            one.
        top1: instead of a tolerance, whether only the place of the largest value in each row has to be the same.
        label: the text that begins an output of text, or the label in the first text of Triton's classification
            extension. It needs no `expect`.

    Raises:
        ConfigurationError: a value has another type or is out of its range, or two ways of comparing are given.
    """

    request: str | Path
    expect: str | Path | None = None
    _: KW_ONLY
    tolerance: Tolerance | None = None
    cosine: float | None = None
    top1: bool = False
    label: str | None = None

    def __post_init__(self) -> None:
        """Check the values."""
        require_type("request of a GoldenRequest", self.request, _FILE)
        for name, kind in (("expect", _FILE), ("tolerance", _TOLERANCE), ("label", _LABEL)):
            if getattr(self, name) is not None:
                require_type(f"{name} of a GoldenRequest", getattr(self, name), kind)
        require_type("top1 of a GoldenRequest", self.top1, _FLAG)
        given = [name for name in ("tolerance", "cosine", "top1", "label") if self._has(name)]
        if len(given) > 1:
            raise ConfigurationError(
                f"{self._shown} has {' and '.join(given)}: choose one way of comparing, or write two GoldenRequests"
            )
        if given and given != ["label"] and self.expect is None:
            raise ConfigurationError(f"{self._shown} has {given[0]} and nothing to compare with: add expect='FILE.npz'")
        if self.label is not None and self.expect is not None:
            raise ConfigurationError(
                f"{self._shown} has label and expect: omit one of the two, or write two GoldenRequests"
            )
        self._check_cosine()

    def _has(self, name: str) -> bool:
        value = getattr(self, name)
        return value is not None and value is not False

    def _check_cosine(self) -> None:
        value: object = self.cosine
        if value is None:
            return
        if isinstance(value, bool) or not isinstance(value, int | float) or not -1 <= value <= 1:
            raise ConfigurationError(f"cosine of {self._shown} is {value!r} but must be a number from -1 to 1")

    @property
    def _shown(self) -> str:
        return f"GoldenRequest({str(self.request)!r})"


@dataclass(frozen=True)
class Rehearsal:
    """The golden requests of a repository.

    Attributes:
        requests: the requests. Each goes to the entry model: that of an ensemble is the ensemble.
        load_timeout: how long the models may take until they are ready, in seconds: at most 3600, SageMaker's limit for
            the start of a container.

    Raises:
        ConfigurationError: there is no request, a value is not a GoldenRequest, or the time is not within its bounds.
    """

    requests: tuple[GoldenRequest, ...]
    load_timeout: float = _LOAD_TIMEOUT_SECONDS

    def __init__(self, requests: Iterable[GoldenRequest], load_timeout: float = _LOAD_TIMEOUT_SECONDS) -> None:
        given = listed("requests of a Rehearsal", requests, _REQUESTS)
        if not given:
            raise ConfigurationError("a Rehearsal has no requests: give at least one GoldenRequest")
        object.__setattr__(self, "requests", given)
        object.__setattr__(self, "load_timeout", load_timeout)
        seconds: object = load_timeout
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= _MOST_LOAD_SECONDS:
            raise ConfigurationError(
                f"load_timeout of a Rehearsal is {seconds!r} but must be a number of seconds, at most "
                f"{_MOST_LOAD_SECONDS:g}"
            )


def rehearsal_in(file: Path, table: object) -> Rehearsal | None:
    """The rehearsal in the table `[rehearsal]` of a `cdk-triton.toml`; None without the table.

    Raises:
        RepositoryError: the table has an unknown key or a wrong value.
    """
    if table is None:
        return None
    settings = _keys(file, "[rehearsal]", table, ("load_timeout", "requests"))
    rows = settings.get("requests", [])
    if not isinstance(rows, list):
        raise RepositoryError(f"{file} has rehearsal.requests that is no list; write [[rehearsal.requests]]")
    try:
        requests = [_request(file, each) for each in rows]
        return Rehearsal(requests, settings.get("load_timeout", _LOAD_TIMEOUT_SECONDS))
    except ConfigurationError as error:
        raise RepositoryError(f"{file}, [rehearsal]: {error}") from error


def _request(file: Path, row: object) -> GoldenRequest:
    fields = ("request", "expect", "tolerance", "cosine", "top1", "label")
    settings = dict(_keys(file, "[[rehearsal.requests]]", row, fields))
    if "request" not in settings:
        raise RepositoryError(f'{file} has [[rehearsal.requests]] without a request; write request = "golden/cat.json"')
    if (tolerance := settings.get("tolerance")) is not None:
        given = _keys(file, "tolerance", tolerance, ("absolute", "relative"))
        settings["tolerance"] = Tolerance(given.get("absolute", 0.0), given.get("relative", 0.0))
    return GoldenRequest(**settings)


def _keys(file: Path, what: str, table: object, known: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(table, dict):
        raise RepositoryError(f"{file} has {what} that is no table; write a table with {', '.join(map(repr, known))}")
    for key in table:
        if key not in known:
            names = ", ".join(map(repr, known))
            raise RepositoryError(
                f"{file} has the unknown key {key!r} in {what}{did_you_mean(key, known)}; write one of {names}"
            )
    return table
