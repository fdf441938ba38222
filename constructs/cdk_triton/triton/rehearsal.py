"""Golden requests: what the server that will serve a repository is asked before it serves it.

`[rehearsal]` of `cdk-triton.toml` lists them for every reader of the repository:

    [[rehearsal.requests]]
    request = "golden/cat.json"
    expect = "golden/cat.npz"

    [[rehearsal.requests]]
    request = "golden/dog.npz"
    label = "beagle"

The table itself has the limits: `[rehearsal]` with `max_load_seconds = 60`, or `environment = { NAME = "value" }`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from cdk_triton._arguments import has_attribute, listed, one, require_type, several
from cdk_triton._tokens import reject_token
from cdk_triton._wording import did_you_mean
from cdk_triton.errors import ConfigurationError, RepositoryError
from cdk_triton.triton.environment import ContainerEnvironment

__all__ = [
    "GOLDEN_DIRECTORY",
    "GoldenRequest",
    "Rehearsal",
    "Tolerance",
    "golden_files",
    "rehearsal_in",
    "rehearsal_table",
]

GOLDEN_DIRECTORY: Final = "golden"
"""The directory of a repository for files of golden requests. It is not a model, and the archive does not have it."""

MAX_CONCURRENCY: Final = 64
"""Each request at a time takes a thread of the program that sends them, on a machine of 4 to 8 processors."""

_MOST_LOAD_SECONDS: Final = 3600.0  # SageMaker's limit for ContainerStartupHealthCheckTimeoutInSeconds
_LIMITS: Final = (
    ("load_timeout", "seconds", _MOST_LOAD_SECONDS),
    ("max_load_seconds", "seconds", _MOST_LOAD_SECONDS),
    ("max_gpu_memory_mib", "MiB", math.inf),
    ("max_p99_milliseconds", "milliseconds", math.inf),
)


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
    """A request whose answer is known, for a rehearsal.

    An answer must have all outputs for which the request asks. Without `expect` and `label`, any such answer passes.

    Attributes:
        request: the file with the request: JSON as for `cdk-triton invoke --data`, or `.npz` with an array for each
            input. A path that is not absolute is relative to the repository.
        expect: the file with the expected outputs: `.npz` with an array for each output, as `cdk-triton golden record`
            writes it, or the JSON of an answer. Outputs that this file does not have are not compared.
        tolerance: how far float outputs may differ; other outputs have to be equal. By default the tolerance that
            `Parity` uses for the coarsest precision among the repository's recipes, or for FP32 without recipes.
        cosine: instead of a tolerance, the smallest allowed cosine similarity, from -1 to 1, between a float output and
            the expected one.
        top1: instead of a tolerance, whether only the position of the largest value in each row has to be the same.
        label: instead of `expect`, a text that the first element of one of the text outputs must equal. If the request
            asks for Triton's classification, the text is compared with the label of the first class.

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
    """The requests that a server must answer before it serves a repository, and the limits that it must keep.

    Attributes:
        requests: the requests. Each goes to the entry model, which is the ensemble if there is one.
        load_timeout: how many seconds a rehearsal waits for the models to be ready, at most 3600, which is SageMaker's
            limit for the start of a container. None: the default of an endpoint's `container_startup_timeout`, which
            depends on the size of the files.
        environment: container variables that have another value in a rehearsal than on the endpoint, such as a literal
            instead of a CDK token.
        max_load_seconds: the maximum time until the models are ready, in seconds. None: only `load_timeout` applies.
        max_gpu_memory_mib: the maximum memory that the server may use on a GPU while it loads and answers, in MiB.
        max_p99_milliseconds: the maximum 99th percentile of the latency at `concurrency`, in milliseconds.
        concurrency: how many requests the server gets at a time while its latency is measured.

    Raises:
        ConfigurationError: there is no request, a value is not a GoldenRequest, a number is not within its bounds, or a
            variable cannot be set.
    """

    requests: Sequence[GoldenRequest]
    _: KW_ONLY
    load_timeout: float | None = None
    environment: Mapping[str, str] = field(default_factory=dict, hash=False)
    max_load_seconds: float | None = None
    max_gpu_memory_mib: float | None = None
    max_p99_milliseconds: float | None = None
    concurrency: int = 1

    def __post_init__(self) -> None:
        """Check the values."""
        given = listed("requests of a Rehearsal", self.requests, _REQUESTS)
        if not given:
            raise ConfigurationError("a Rehearsal has no requests: give at least one GoldenRequest")
        object.__setattr__(self, "requests", given)
        for name, unit, most in _LIMITS:
            self._check_limit(name, unit, most)
        concurrency: object = self.concurrency
        if isinstance(concurrency, bool) or not isinstance(concurrency, int) or not 1 <= concurrency <= MAX_CONCURRENCY:
            raise ConfigurationError(
                f"concurrency of a Rehearsal is {concurrency!r} but must be a whole number from 1 to {MAX_CONCURRENCY}"
            )
        object.__setattr__(self, "environment", _variables(self.environment))

    def _check_limit(self, name: str, unit: str, most: float) -> None:
        value: object = getattr(self, name)
        if value is None:
            return
        reject_token(value, f"{name} of a Rehearsal")
        number = value if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
        if not (0 < number <= most and number < math.inf):
            bounds = f"of {unit}, at most {most:g}" if most < math.inf else f"of {unit} above 0"
            raise ConfigurationError(f"{name} of a Rehearsal is {value!r} but must be a number {bounds}")
        object.__setattr__(self, name, float(number))  # 60 and 60.0 are one limit, and one rehearsal key


def _variables(given: object) -> Mapping[str, str]:
    """The variables, checked as those of a container are."""
    try:
        variables = ContainerEnvironment(variables=given).variables  # type: ignore[arg-type]  # it is checked there
    except ConfigurationError as error:
        raise ConfigurationError(f"environment of a Rehearsal: {error}") from error
    for name, value in variables.items():
        reject_token(value, f"the variable {name!r} of a Rehearsal")
    return variables


def golden_files(rehearsal: Rehearsal | None, root: Path) -> list[Path]:
    """The files of the golden requests of a repository, with those of the expected answers."""
    requests = () if rehearsal is None else rehearsal.requests
    return [root / file for each in requests for file in (each.request, each.expect) if file is not None]


def rehearsal_in(file: Path, table: object) -> Rehearsal | None:
    """The rehearsal in the table `[rehearsal]` of a `cdk-triton.toml`; None without the table.

    Raises:
        RepositoryError: the table has an unknown key or a wrong value.
    """
    if table is None:
        return None
    settings = dict(_keys(file, "[rehearsal]", table, _names(Rehearsal)))
    rows = settings.pop("requests", [])
    if not isinstance(rows, list):
        raise RepositoryError(f"{file} has rehearsal.requests that is no list; write [[rehearsal.requests]]")
    requests = [_request(file, *each) for each in enumerate(rows, start=1)]
    try:
        return Rehearsal(requests, **settings)
    except ConfigurationError as error:
        raise RepositoryError(f"{file}, [rehearsal]: {error}") from error


def rehearsal_table(rehearsal: Rehearsal, root: Path) -> dict[str, Any]:
    """The table that `rehearsal_in` reads, with paths from the repository in `root`."""
    table = _given(rehearsal)
    return {**table, "requests": [_given(each, root) for each in rehearsal.requests]}


def _given(value: Rehearsal | GoldenRequest | Tolerance, root: Path = Path()) -> dict[str, Any]:
    """The arguments that differ from their defaults."""
    rows = {}
    for each in fields(value):
        given = getattr(value, each.name)
        if each.name == "requests" or given is None or given is False or given == {}:
            continue
        if each.name in ("request", "expect"):
            given = Path(os.path.relpath(root / given, root)).as_posix()
        elif isinstance(given, Tolerance):
            given = _given(given)
        elif isinstance(given, Mapping):
            given = dict(given)
        rows[each.name] = given
    return rows


def _request(file: Path, number: int, row: object) -> GoldenRequest:
    what = f"[[rehearsal.requests]] number {number}"
    settings = dict(_keys(file, what, row, _names(GoldenRequest)))
    if "request" not in settings:
        raise RepositoryError(f'{file} has {what} without a request; write request = "golden/cat.json"')
    try:
        if (tolerance := settings.get("tolerance")) is not None:
            given = _keys(file, f"tolerance of {what}", tolerance, ("absolute", "relative"))
            settings["tolerance"] = Tolerance(given.get("absolute", 0.0), given.get("relative", 0.0))
        return GoldenRequest(**settings)
    except ConfigurationError as error:
        raise RepositoryError(f"{file}, {what}: {error}") from error


def _names(of: type[Rehearsal | GoldenRequest]) -> tuple[str, ...]:
    """The keys of a table: the names of the arguments."""
    return tuple(each.name for each in fields(of))


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
