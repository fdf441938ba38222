"""CT183: whether a Python model finds the files that it opens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePosixPath
from posixpath import normpath

from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.backend_files import BackendFile, below, repository_files
from cdk_triton.checks.registry import Problem, in_line, rule
from cdk_triton.checks.sources import backend
from cdk_triton.checks.spelling import Suggestions
from cdk_triton.python_models.initialized import initialized
from cdk_triton.python_models.modules import needed_sources
from cdk_triton.python_models.reader.opened_files import SOURCE, OpenedFile
from cdk_triton.python_models.reader.source import PythonSource
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.serve import SINGLE_MODEL_REPOSITORY

_MODULES = (".py", ".pyc", ".so")
_BESIDE = "make the path relative to the source file: Path(__file__).parent"
# Directories of every Linux image. Other files of an image, such as /models/bert, are not known.
_OF_IMAGE = frozenset(
    {
        *("bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "opt", "proc", "run", "sbin", "sys", "tmp", "usr"),
        *("var",),
    }
)


@rule(
    "CT183",
    Severity.WARNING,
    "a Python model opens a file by a path that the endpoint does not have",
    source=backend("python_backend", "src/stub_launcher.cc", 450, 462),
)
def missing_path(context: CheckContext) -> Iterator[Problem]:
    """A Python model opens a file by a path of another machine, or a file that is not in the archive.

    The line fails, in most cases with `FileNotFoundError`:

    - The process of a Python model runs in the server's working directory, which contains no model. So it does not find
      a relative path.
    - A single-model endpoint unpacks the archive in `/opt/ml/model`, and not in `/models`, which `docker run` usually
      mounts. A multi-model endpoint unpacks each archive in a directory of its own, so a path below `/opt/ml/model`
      does not exist there.
    - The file is nowhere in the archive. In many cases, the weights were not copied.

    Make the path relative to the source file with `Path(__file__).parent`.

    Example:
        # model/config.pbtxt
        backend: "python"
        # model/1/vocabulary.txt
        cat dog
        # model/1/model.py
        class TritonPythonModel:
            def initialize(self, args):
                with open("/models/model/1/vocabulary.txt") as file:
                    self.words = file.read().split()

            def execute(self, requests):
                return []

    Instead:
        # model/1/model.py
        from pathlib import Path

        class TritonPythonModel:
            def initialize(self, args):
                with open(Path(__file__).parent / "vocabulary.txt") as file:
                    self.words = file.read().split()

            def execute(self, requests):
                return []

    Limits:
        The rule checks literal paths in a call of `open`, of a method of `Path`, or of a function such as `numpy.load`
        or `torch.load`. In `from_pretrained`, it checks a relative path only if the path begins with `./` or `../`,
        because another text may be the name of a model. The image may contain any file outside `/opt/ml/model`, so the
        rule reports such a path only if it resembles the path of a file in the repository. In `initialize`, like CT184,
        it also follows variables that contain a path made from `__file__` or `args["model_repository"]`, unless earlier
        code may have made the file. The rule skips a path if the model's code also tests whether the file exists, or
        makes the file. If any code of the model makes files, the rule also skips all files beside the source. It skips
        a model in which an import of one of its own modules is conditional.
    """
    suggestions = Suggestions()
    seen: set[tuple[PurePosixPath, OpenedFile]] = set()
    lines: set[tuple[PurePosixPath, int]] = set()
    for each, sources in needed_sources(context):
        for path, file in _read(sources):
            found = _missed(context, each, path, file, suggestions)
            if found is not None and (path, file) not in seen and not _may_import_more(each, sources):
                seen.add((path, file))
                lines.add((path, file.line))
                yield in_line(path, file.line, *found)
    for each, outcome, is_first in initialized(context):
        for absent in outcome.absent if is_first else ():
            if (each.path, absent.line) in lines:
                continue
            yield in_line(each.path, absent.line, *_missing(each, absent, PurePosixPath(absent.path), suggestions))


def _read(sources: Mapping[PurePosixPath, PythonSource]) -> Iterator[tuple[PurePosixPath, OpenedFile]]:
    """Each file that sources read and that none of them may make, with its source."""
    changes_directory = any(source.references.changes_directory for source in sources.values())
    for path, source in sources.items():
        for file in sorted(source.references.opened.read):
            is_relative = not file.path.startswith((SOURCE, "/"))
            is_made = any(other.references.opened.may_make(file.path) for other in sources.values())
            if not is_made and not (is_relative and changes_directory):
                yield path, file


def _may_import_more(each: BackendFile, sources: Mapping[PurePosixPath, PythonSource]) -> bool:
    """Whether the sources import, in code that may not run, a module of the model that is not among them."""
    names = frozenset[str]().union(*(source.references.imports for source in sources.values()))
    others = (path for path in each.files if path.suffix in _MODULES and path not in sources)
    return any((path.parent if path.stem == "__init__" else path).name.partition(".")[0] in names for path in others)


def _missed(
    context: CheckContext, each: BackendFile, source: PurePosixPath, file: OpenedFile, suggestions: Suggestions
) -> tuple[str, str] | None:
    """What a path does, and the fix, if the endpoint does not have the file."""
    if file.path.startswith(SOURCE):
        return _beside(each, source, file, suggestions)
    if file.path.startswith("/"):
        return _absolute(context, each, source, file, suggestions)
    return _relative(each, source, file)


def _beside(
    each: BackendFile, source: PurePosixPath, file: OpenedFile, suggestions: Suggestions
) -> tuple[str, str] | None:
    """What a path relative to the source does, and the fix, if nothing in the model's directory has the file's name."""
    place = PurePosixPath(normpath(f"{source}{file.path.removeprefix(SOURCE)}"))
    if not place.is_relative_to(each.model.directory) or any(place.name in path.parts for path in each.files):
        return None
    return _missing(each, file, place, suggestions)


def _relative(each: BackendFile, source: PurePosixPath, file: OpenedFile) -> tuple[str, str] | None:
    """What a relative path does, and the fix, if the repository contains the file or directory that is meant."""
    files = repository_files(each.context)
    found = _meant(each, source, file.path, lambda place: files.has(place) or files.has_directory(place))
    if found is None or PurePosixPath(file.path).name in ("", ".."):  # every working directory has these
        return None
    return (
        f"opens the relative path {file.path!r}, which Python looks up in the server's working directory, so "
        f"{_not_found(each, file, found)}",
        _BESIDE,
    )


def _absolute(
    context: CheckContext, each: BackendFile, source: PurePosixPath, file: OpenedFile, suggestions: Suggestions
) -> tuple[str, str] | None:
    """What an absolute path does, and the fix, if the endpoint certainly does not have the file."""
    files, path = repository_files(context), PurePosixPath(normpath(file.path))
    unpacked = PurePosixPath(SINGLE_MODEL_REPOSITORY)
    where = f"SageMaker unpacks the archive in {unpacked}"
    if context.mode == "multi":
        where = "SageMaker unpacks each archive of a multi-model endpoint in a directory of its own"
    if path.is_relative_to(unpacked) and path != unpacked:
        place = path.relative_to(unpacked)
        if context.mode == "single":
            is_there = files.has(place) or files.has_directory(place)
            return None if is_there else _missing(each, file, place, suggestions)
        return f"opens {file.path!r}, but {where}, so {_not_found(each, file)}", _BESIDE
    if path.parts[1:2] and path.parts[1] in _OF_IMAGE:
        return None
    for start in range(1, len(path.parts) - 1):
        place = PurePosixPath(*path.parts[start:])
        if files.has(place) or files.has_directory(place):
            break
    else:
        found = _meant(each, source, path.name, files.has)
        if found is None:
            return None
        place = found
    return f"opens {file.path!r}, but {where}, so {_not_found(each, file, place)}", _BESIDE


def _missing(each: BackendFile, file: OpenedFile, place: PurePosixPath, suggestions: Suggestions) -> tuple[str, str]:
    """What the line does that opens a file which is not in the archive, and the fix."""
    names = repository_files(each.context).names_in(place.parent)
    close = suggestions.closest(place.name, [name for name in names if PurePosixPath(name).suffix == place.suffix])
    return (
        f"opens {place}, which the archive does not contain, so {_not_found(each, file)}",
        "add the file to the repository, or correct the path" if close is None else f"did you mean {close!r}?",
    )


def _not_found(each: BackendFile, file: OpenedFile, place: PurePosixPath | str = "the file") -> str:
    """That the model does not find a file, with the name of the error if it is known."""
    error = file.error.partition(":")[0]
    return f"{each.model.name!r} does not find {place}" + (f": {error}" if error else "")


def _meant(
    each: BackendFile, source: PurePosixPath, name: str, is_there: Callable[[PurePosixPath], bool]
) -> PurePosixPath | None:
    """What the author may have meant by a relative path."""
    directories = (source.parent, each.version, each.model.directory, PurePosixPath())
    return next((place for place in (below(directory, name) for directory in directories) if is_there(place)), None)
