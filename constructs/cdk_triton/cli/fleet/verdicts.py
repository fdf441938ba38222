"""The verdict of the checks about each repository, and its keys.

Repositories are checked in several processes. A verdict is kept in the cache of file states, under the state of the
whole directory, so an unchanged repository is not even parsed again.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from cdk_triton._file_cache import FileCache, fingerprint, ignoring_values_before, is_settled
from cdk_triton.artifacts.keys import Keys
from cdk_triton.artifacts.names import check_name
from cdk_triton.artifacts.prepare import findings_of, prepared_document
from cdk_triton.artifacts.publisher_description import PublisherDescription
from cdk_triton.artifacts.recipes.documents import recipes_for
from cdk_triton.artifacts.repository_cache import library_state
from cdk_triton.cli.fleet.manifest import Listed
from cdk_triton.cli.text import headline
from cdk_triton.errors import ArchiveError, ConfigurationError, RepositoryError
from cdk_triton.protocol import layout
from cdk_triton.protocol.plan import BuildInput, BuildMachine
from cdk_triton.protocol.publication import UploadedBuild, UploadedRehearsal
from cdk_triton.rehearsal.prepared import published_rehearsal
from cdk_triton.triton import Finding, ModelRepository, Severity
from cdk_triton.triton.findings import joined
from cdk_triton.triton.locations import Location, Locations
from cdk_triton.triton.rehearsal import golden_files

__all__ = ["Verdict", "is_current", "judge"]

_KIND: Final = "verdict"
_FORMAT: Final = 5
"""The number is raised when `_checked` returns other members, so that older verdicts are not read."""
_PART: Final = 8
"""Repositories that a process checks before it returns their verdicts."""
_ANY_BUILDER: Final = BuildMachine("", 0, {}, BuildInput(None, "", ""))
_WORTH_PROCESSES: Final = 16
"""Repositories. A process of its own takes as long to start as these take to check."""


@dataclass(frozen=True)
class Verdict:
    """The result of the checks of a repository that is to be published.

    Attributes:
        listed: the ensemble and the directory.
        repository: the name of the repository's directory.
        findings: what the checks found.
        places: the place of each finding in its file; None if it is about the file as a whole.
        keys: the keys of the repository; None if it cannot be published.
        faults: the reasons why the repository has no keys, apart from the findings.
        state: the state of the repository's files when it was checked; None if somebody may have written to them.
        build: how the archive is built; None if the repository itself is packed.
        rehearsal: how the archive is rehearsed; None without golden requests, or if the publisher does not rehearse.
        rehearsal_key: the key of the rehearsal; empty without one.
    """

    listed: Listed
    repository: str
    findings: tuple[Finding, ...]
    places: tuple[Location | None, ...]
    keys: Keys | None
    faults: tuple[str, ...]
    build: UploadedBuild | None
    state: str | None
    rehearsal: UploadedRehearsal | None = None
    rehearsal_key: str = ""

    def rehearsed(self, rehearsal: UploadedRehearsal | None, publisher: PublisherDescription) -> Verdict:
        """The verdict on a repository without errors, with a rehearsal."""
        if rehearsal is None or self.keys is None:
            return self
        return replace(self, rehearsal=rehearsal, rehearsal_key=publisher.rehearsal_key(rehearsal, self.artifact_key))

    @property
    def errors(self) -> list[str]:
        """The reasons why it cannot be published."""
        return [*self._texts(Severity.ERROR), *self.faults]

    @property
    def warnings(self) -> list[str]:
        """The findings that do not prevent a publication."""
        return self._texts(Severity.WARNING)

    def _texts(self, severity: Severity) -> list[str]:
        return [
            joined(headline(each.path, each, place), each.fix)
            for each, place in zip(self.findings, self.places, strict=True)
            if each.severity is severity
        ]

    @property
    def artifact_key(self) -> str:
        """The key of the archive, of a repository without errors."""
        assert self.keys is not None  # else there would be an error
        return self.keys.artifact

    @property
    def source_key(self) -> str:
        """The key of what the archive is made from, of a repository without errors."""
        assert self.keys is not None  # else there would be an error
        return self.keys.source

    @property
    def target_model(self) -> str:
        """The name that callers of the published version send, of a repository without errors."""
        return layout.target_model(self.listed.ensemble, self.source_key)


def judge(
    ensembles: Sequence[Listed],
    publisher: PublisherDescription,
    *,
    recheck: bool = False,
    progress: Callable[[int], object] = lambda _: None,
) -> list[Verdict]:
    """Check every repository.

    Args:
        ensembles: the ensembles.
        publisher: the publisher, for whose platform they are checked.
        recheck: whether to ignore everything that earlier runs have cached: verdicts, digests, and findings in files.
        progress: is called with the number of repositories that are done, first with that of the cached verdicts.
    """
    question = _question(publisher)
    names = [hashlib.sha256(f"{each.directory.resolve()} {_FORMAT} {question}".encode()).digest() for each in ensembles]
    with FileCache() as file_cache:
        kept = [None if recheck else _kept(file_cache, *each) for each in zip(names, ensembles, strict=True)]
    found = {number: answer for number, answer in enumerate(kept) if answer is not None}
    progress(len(found))
    unknown = [number for number, answer in enumerate(kept) if answer is None]
    directories = [str(ensembles[number].directory) for number in unknown]
    ask = partial(_answer, question, time.time_ns() if recheck else 0)
    for number, answer in zip(unknown, _answers(ask, directories), strict=True):
        found[number] = answer
        progress(len(found))
    with FileCache() as file_cache:
        for number in unknown:
            text, state = found[number]
            if state is not None:
                file_cache.keep(_KIND, names[number], state, text)
    return [
        _verdict(each, json.loads(found[number].text), found[number].state, publisher)
        for number, each in enumerate(ensembles)
    ]


def _kept(file_cache: FileCache, name: bytes, listed: Listed) -> _Answer | None:
    """The verdict of an earlier run, if the repository is still as it was."""
    if not file_cache.has(_KIND, name):  # which is cheaper than the state of a directory
        return None
    if (state := _state(listed.directory)) is None or (text := file_cache.recall(_KIND, name, state)) is None:
        return None
    return _Answer(text, state)


def is_current(verdict: Verdict, publisher: PublisherDescription) -> bool:
    """Whether a verdict still applies to its repository: the files are unchanged, or have the same keys."""
    if verdict.state is not None and verdict.state == _state(verdict.listed.directory):
        return True
    (again,) = judge([verdict.listed], publisher)
    return again.keys == verdict.keys


def _question(publisher: PublisherDescription) -> str:
    """The publisher, without what no finding and no key depends on, such as its names and how much it does at once."""
    asked = replace(
        publisher, multi_model="", fleet="", max_concurrency=1, builder=_ANY_BUILDER, max_builds=1, is_next=False
    )
    return json.dumps(asked.document(), sort_keys=True)


class _Answer(NamedTuple):
    """The verdict on a repository as JSON, and the state of the repository; no state if it changed meanwhile."""

    text: str
    state: str | None


def _answers(ask: Callable[[str], _Answer], directories: Sequence[str]) -> Iterator[_Answer]:
    if len(directories) < _WORTH_PROCESSES:
        yield from map(ask, directories)
        return
    # A fork would copy the locks of the threads that boto3 may have started.
    context = multiprocessing.get_context("forkserver")
    pool = ProcessPoolExecutor(os.cpu_count(), mp_context=context, initializer=_end_with_command)
    parts = [directories[first : first + _PART] for first in range(0, len(directories), _PART)]
    try:
        with _interrupts_held():
            futures = [pool.submit(_each, ask, part) for part in parts]
        for future in futures:
            yield from future.result()
    except BaseException:
        # No future is cancelled, as `map` would do: the pool gives each future the end of the processes as its error,
        # and Python 3.11 fails with a traceback at a cancelled one.
        for process in multiprocessing.active_children():  # a check of a large repository takes long
            process.terminate()
        raise
    finally:
        pool.shutdown()


def _each(ask: Callable[[str], _Answer], directories: Sequence[str]) -> list[_Answer]:
    return [ask(each) for each in directories]


def _end_with_command() -> None:
    """End this process when the command has ended, even if a signal has killed the command."""
    command = multiprocessing.parent_process()
    assert command is not None

    def wait() -> None:
        command.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back, which a terminal sends to each process.

    A process inherits the signals that are blocked when it starts. So the processes of the checks never get it.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _answer(question: str, oldest_ns: int, directory: str) -> _Answer:
    """Check one repository in a process, without values that were cached before a time."""
    root = Path(directory)
    before = _state(root)
    with ignoring_values_before(oldest_ns):
        found = _checked(_publisher(question), directory)
    is_known = before == _state(root) and found.get("is_inside", True)
    return _Answer(json.dumps(found), before if is_known else None)


def _checked(publisher: PublisherDescription, directory: str) -> dict[str, Any]:
    found: dict[str, Any] = {"findings": [], "places": [], "keys": None, "faults": [], "build": None, "rehearsal": None}
    found["repository"] = Path(directory).resolve().name
    repository = None
    try:
        repository = ModelRepository.from_directory(directory)
        if recipes := recipes_for(repository, publisher.recipes):
            repository = ModelRepository.from_directory(directory, recipes=recipes)
        found["repository"] = check_name(repository.name, "the repository's directory")
        prepared = prepared_document(repository, "multi", publisher.platform, publisher.environment)
        found |= {"findings": prepared["findings"], "faults": prepared["errors"]}
        if not repository.recipes:
            found["keys"] = prepared["keys"]
        elif prepared["build"] is not None:
            numbers = [number for number, recipe in enumerate(publisher.recipes) if recipe in repository.recipes]
            found |= {"keys": prepared["keys"], "build": {"recipes": numbers, "ensemble": prepared["build"].ensemble}}
        if publisher.rehearse:
            found |= _rehearsal(repository, publisher)
    except (RepositoryError, ArchiveError, ConfigurationError) as error:
        found["faults"] = [str(error)]
    return found if repository is None else found | {"places": _places(repository, found["findings"])}


def _rehearsal(repository: ModelRepository, publisher: PublisherDescription) -> dict[str, Any]:
    """The rehearsal, and whether all its files are in the repository, whose state the verdict is kept under."""
    rehearsal = published_rehearsal(repository, publisher.rehearsed_environment)
    root = repository.root.resolve()
    is_inside = all(file.resolve().is_relative_to(root) for file in golden_files(repository.rehearsal, root))
    return {"rehearsal": None if rehearsal is None else asdict(rehearsal), "is_inside": is_inside}


def _places(repository: ModelRepository, findings: Sequence[Mapping[str, Any]]) -> list[Location | None]:
    """The place of each finding; no places if somebody has removed a file since the checks."""
    if not findings:
        return []
    locations = Locations(repository)
    try:
        return [locations.of(each) for each in findings_of(findings)]
    except OSError:
        return [None for _ in findings]


@cache
def _publisher(question: str) -> PublisherDescription:
    return PublisherDescription.parse(json.loads(question), "this one")


def _verdict(listed: Listed, found: Mapping[str, Any], state: str | None, publisher: PublisherDescription) -> Verdict:
    findings, faults = findings_of(found["findings"]), tuple(found["faults"])
    places = tuple(None if each is None else Location(*each) for each in found["places"])
    keys = None if found["keys"] is None else Keys(*found["keys"])
    build = None
    if found["build"] is not None:
        build = UploadedBuild(tuple(found["build"]["recipes"]), found["build"]["ensemble"])
    rehearsal = None if found["rehearsal"] is None else UploadedRehearsal(**found["rehearsal"])
    verdict = Verdict(listed, found["repository"], findings, places, keys, faults, build, state)
    return verdict.rehearsed(rehearsal, publisher)


def _state(root: Path) -> str | None:
    """The state of everything in a directory and of the rules; None if something in it may be changing."""
    library, read_ns = library_state(), time.time_ns()
    if library is None:
        return None
    digest = hashlib.sha256(library.encode())
    try:
        for entry in _walk(str(root)):
            if entry.is_dir(follow_symlinks=False):  # its times change with its entries, which follow
                digest.update(f"{entry.path}/\n".encode("utf-8", "surrogateescape"))
                continue
            state = entry.stat()
            if entry.is_symlink() and entry.is_dir():  # its content is elsewhere
                return None
            if not is_settled(state, read_ns):
                return None
            target = Path(entry.path).readlink() if entry.is_symlink() else ""
            digest.update(f"{entry.path}\0{target}\0{fingerprint(state)}\n".encode("utf-8", "surrogateescape"))
    except OSError:
        return None
    return digest.hexdigest()


def _walk(directory: str) -> Iterator[os.DirEntry[str]]:
    """The directories, files and links below a directory, in order."""
    with os.scandir(directory) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        yield entry
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(entry.path)
