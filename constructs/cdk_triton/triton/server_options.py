"""The options of tritonserver in every release, and what the server makes of a list of arguments.

`data/server_options.json` is the table. `tools/generate/server_options.py` writes it from the server's sources.
tritonserver reads its arguments with `getopt_long`, so that an option may be abbreviated and may have its value in the
next argument. The tests compare these functions with the real tritonserver.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, NamedTuple

from cdk_triton._wording import did_you_mean, listed
from cdk_triton.triton.option_values import MAX_THREADS, value_fault
from cdk_triton.triton.releases import release_order

__all__ = [
    "ArgumentFault",
    "Given",
    "argument_fault",
    "given_options",
    "loaded_models",
    "options_of",
    "reads_variable",
    "variable_since",
]

_FIX = "write an option and its value as one item, for example '--exit-timeout-secs=30'"
_REMOVE = "remove the option"


class Given(NamedTuple):
    """An option that the server was given.

    Attributes:
        option: its whole name, without dashes.
        value: its value; "" for an option without one.
    """

    option: str
    value: str


class ArgumentFault(NamedTuple):
    """The first reason for which the server would not start with a list of arguments.

    Attributes:
        argument: the argument, as it was written.
        reason: the reason, as the rest of a sentence that begins with the argument.
        fix: what to do, as the end of that sentence.
    """

    argument: str
    reason: str
    fix: str


def options_of(release: str | None) -> Mapping[str, str]:
    """Option → how the server of a release reads its value, as the table has it; None: the newest in the table."""
    return MappingProxyType(_value_kinds(_release_in_table(release)))


def given_options(arguments: Sequence[str], release: str | None = None) -> tuple[Given, ...]:
    """The options that a list of arguments gives to the server, as far as it reads them.

    Args:
        arguments: the arguments of tritonserver, one per item.
        release: the release that reads them; None: the newest in the table.
    """
    if not arguments:
        return ()
    return tuple(each for each in _read_arguments(arguments, _release_in_table(release)) if isinstance(each, Given))


def loaded_models(arguments: Sequence[str]) -> tuple[str, ...]:
    """The models that the server loads because of a list of arguments."""
    return tuple(value for option, value in given_options(arguments) if option == "load-model")


def argument_fault(arguments: Sequence[str], release: str | None = None) -> ArgumentFault | None:
    """Why the server would not start with these arguments, or would no longer answer SageMaker.

    Args:
        arguments: the arguments of tritonserver, one per item.
        release: the release that reads them; for one that is newer than the table, the newest in the table. None: only
            faults for every release in the table count.

    Returns:
        The first fault; None if the release takes the arguments, or if the table does not have so old a release.
    """
    if release is not None:
        return None if release_order(release) < release_order(_first_with_arguments()) else _fault(arguments, release)
    fault = None
    for each in _distinct_releases():
        fault = _fault(arguments, each)
        if fault is None:
            return None
    return fault


def reads_variable(release: str, name: str) -> bool:
    """Whether the start script or the server of a release reads an environment variable.

    Releases that are older than the table are assumed to read every variable.
    """
    table = _table()
    if release_order(release) < release_order(table["releases"][0]):
        return True
    return _is_in(_release_in_table(release), table["variables"].get(name, []))


def variable_since(name: str) -> str:
    """The first release of the table that reads an environment variable."""
    since: str = _table()["variables"][name][0][0]
    return since


def _fault(arguments: Sequence[str], release: str) -> ArgumentFault | None:
    given: list[Given] = []
    for each in _read_arguments(arguments, _release_in_table(release)):
        if isinstance(each, ArgumentFault):
            return each
        given.append(each)
    names = {option.option for option in given}
    cache = [value for option, value in given if option == "cache-config" and value.startswith("local,")]
    if cache and not any(value.startswith("local,size=") for value in cache):
        return ArgumentFault(
            f"--cache-config={cache[0]}",
            "but the cache 'local' needs a size",
            "add '--cache-config=local,size=<bytes>'",
        )
    if {"cache-config", "response-cache-byte-size"} <= names:
        return ArgumentFault(
            "--response-cache-byte-size",
            "which tritonserver does not accept together with --cache-config",
            "give the size only as --cache-config=local,size=<bytes>",
        )
    return None


def _read_arguments(arguments: Sequence[str], release: str) -> Iterator[Given | ArgumentFault]:
    """As `getopt_long` reads them, up to the first fault."""
    kinds = _value_kinds(release)
    pending = iter(arguments)
    for argument in pending:
        if argument == "--":
            yield ArgumentFault(argument, "which ends the options, so the server takes no option after it", _FIX)
            return
        if not argument.startswith("--"):
            reason = (
                "which has one dash, but every option of tritonserver has two"
                if argument[:1] == "-"
                else (
                    "which is neither an option nor an option's value, so tritonserver would exit with "
                    "'Unexpected argument'"
                )
            )
            yield ArgumentFault(argument, reason, _FIX)
            return
        written, has_value, value = argument[2:].partition("=")
        option = _unabbreviated(written, release)
        if isinstance(option, ArgumentFault):
            yield option._replace(argument=argument)
            return
        kind = kinds[option]
        if kind == "flag" and has_value:
            yield ArgumentFault(argument, f"but --{option} takes no value", f"write '--{option}'")
            return
        if kind != "flag" and not has_value:
            following = next(pending, None)
            if following is None or following.startswith("--"):
                yield ArgumentFault(argument, f"but --{option} needs a value", f"write '--{option}=<value>'")
                return
            argument, value = f"{argument} {following}", following
        if fault := _value_fault(argument, option, kind, value, release):
            yield fault
            return
        yield Given(option, value)


def _unabbreviated(written: str, release: str) -> str | ArgumentFault:
    """The option itself, or the only one that begins with `written`."""
    kinds = _value_kinds(release)
    if written in kinds:
        return written
    if not written:
        return ArgumentFault("", "which names no option", _FIX)
    meant = [name for name in kinds if name.startswith(written)]
    if len(meant) == 1:
        return meant[0]
    if meant:
        names = listed([f"--{name}" for name in meant], shown=4)
        return ArgumentFault("", f"which is short for several options: {names}", "write the whole name of the option")
    near = did_you_mean(f"--{written}", [f"--{name}" for name in kinds])
    since = _first_release_with(written)
    if since is None:
        newest = _release_in_table(None)
        reason = f"which no release of tritonserver up to {newest} has{near}"
        return ArgumentFault("", reason, "use an option that `tritonserver --help` prints, or remove it")
    reason = f"which tritonserver {release} does not have ({since} was the first with it)"
    return ArgumentFault("", reason, f"serve with {since} or newer, or remove the argument")


def _value_fault(argument: str, option: str, kind: str, value: str, release: str) -> ArgumentFault | None:
    plain = _FLAGS.get(value.lower(), value.lower())
    if (reason := _RESERVED.get(option)) is not None and plain != reason.harmless:
        return ArgumentFault(argument, reason.reason, reason.fix)
    allowed = value_fault(kind, value, release)
    if allowed is None and option in _LEAST_THREADS:
        threads = value_fault(f"int32 from {_LEAST_THREADS[option]} to {MAX_THREADS}", value, release)
        if threads is not None:
            return ArgumentFault(argument, "but the server cannot start this number of threads", f"give {threads}")
    if allowed is None:
        return None
    return ArgumentFault(argument, f"but tritonserver does not accept this value of --{option}", f"give {allowed}")


class _Reserved(NamedTuple):
    harmless: str | None
    reason: str
    fix: str


_FLAGS: Mapping[str, str] = {"1": "true", "on": "true", "0": "false", "off": "false"}  # ParseBoolOption of the parser

# The server takes other numbers of threads, and does not answer with them: a negative one is stored without its sign.
_LEAST_THREADS: Mapping[str, int] = {
    "buffer-manager-thread-count": 0,
    "model-load-thread-count": 0,
    "sagemaker-thread-count": 1,
}

# What the start script sets, or SageMaker by it, and what must not be set to anything else.
_RESERVED: Mapping[str, _Reserved] = {
    "help": _Reserved(None, "with which tritonserver prints its options and exits", _REMOVE),
    "allow-sagemaker": _Reserved(
        "true", "with which the server does not answer SageMaker's requests to /ping and /invocations", _REMOVE
    ),
    "allow-vertex-ai": _Reserved(
        "false", "with which the server exits, because SageMaker sets no variables of Vertex AI", _REMOVE
    ),
    "sagemaker-port": _Reserved(
        None, "but SageMaker sends its requests to the port in SAGEMAKER_BIND_TO_PORT", "set the field port instead"
    ),
    "model-control-mode": _Reserved(
        "explicit",
        "but the start script loads models by name, which the server allows only in the mode 'explicit'",
        _REMOVE,
    ),
    **dict.fromkeys(
        ("model-repository", "model-store"),
        _Reserved(
            None,
            "but the start script gives the server the directory to which SageMaker downloads the models",
            "put all models into one model repository",
        ),
    ),
}


def _first_release_with(written: str) -> str | None:
    """None if no release of the table has the option."""
    rows = _table()["options"].get(written, [])
    return min((first for row in rows for first, _ in row["releases"]), default=None)


@cache
def _value_kinds(release: str) -> dict[str, str]:
    """Option → how the server of a release reads its value."""
    return {
        name: row["kind"]
        for name, rows in _table()["options"].items()
        for row in rows
        if _is_in(release, row["releases"])
    }


def _is_in(release: str, runs: Iterable[Sequence[str]]) -> bool:
    return any(release_order(first) <= release_order(release) <= release_order(last) for first, last in runs)


def _release_in_table(name: str | None) -> str:
    """The newest of the table for None or a newer one."""
    newest: str = _table()["releases"][-1]
    return newest if name is None or release_order(name) > release_order(newest) else name


def _first_with_arguments() -> str:
    first: str = _table()["variables"]["SAGEMAKER_TRITON_ADDITIONAL_ARGS"][0][0]
    return first


@cache
def _distinct_releases() -> tuple[str, ...]:
    """The last release of each set of options, oldest first."""
    found: dict[tuple[tuple[str, str], ...], str] = {}
    for release in _table()["releases"]:
        if release_order(release) >= release_order(_first_with_arguments()):
            found[tuple(_value_kinds(release).items())] = release
    return tuple(found.values())


@cache
def _table() -> dict[str, Any]:
    text = files(__package__).joinpath("data", "server_options.json").read_text(encoding="utf-8")
    table: dict[str, Any] = json.loads(text)
    return table
