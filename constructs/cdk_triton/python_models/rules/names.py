"""CT169, CT175, CT176 and CT180: the names that Python models use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from cdk_triton.checks.context import CheckContext, per_check
from cdk_triton.checks.derived.backend_files import BackendFile
from cdk_triton.checks.derived.releases import is_older, known_release, of_release
from cdk_triton.checks.registry import Problem, in_line, rule
from cdk_triton.checks.sources import backend
from cdk_triton.checks.spelling import Suggestions
from cdk_triton.python_models.modules import has_module, needed_sources
from cdk_triton.python_models.reader.backend_utils import MODULE, READ_THROUGH, SET_LATE_SINCE, SET_LATER, utility_names
from cdk_triton.python_models.reader.image_modules import standard_modules
from cdk_triton.python_models.reader.source import PythonSource
from cdk_triton.python_models.reader.standard_names import names_everywhere, pythons_with
from cdk_triton.python_models.reader.uses import Used
from cdk_triton.python_models.search import is_in_repository, widest
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.releases import is_at_least

_STUB = "src/pb_stub.cc"

# Alias → the type of Python. Removed in numpy 1.24, and not in numpy 2 either:
# https://numpy.org/doc/stable/release/1.24.0-notes.html. The first numpy for Python 3.12 is 1.26. Older Pythons may
# have an older numpy.
_NUMPY = {"int": "int", "float": "float", "complex": "complex", "object": "object", "str": "str", "unicode": "str"}
_OLD_NUMPY = ("3.8", "3.10")

_USUAL = {"np": "numpy", "pb_utils": MODULE}


@per_check
def _needed(context: CheckContext) -> Iterator[tuple[BackendFile, PurePosixPath, PythonSource, Used]]:
    """The first use of each name that a file of a Python model needs, and that no other file sets."""
    if context.environment is not None and "PYTHONPATH" in context.environment.variables:
        return
    seen = set()
    for each, sources in needed_sources(context):
        attributes = frozenset[str]().union(*(source.attributes for source in sources.values()))
        search = widest(source.search for source in sources.values())
        if search == "anywhere" or each.files.has(each.model.directory / "triton_python_backend_stub"):
            continue
        for path, source in sources.items():
            for used in source.used:
                place = (path, used.module, used.name)
                if used.name in attributes or place in seen:
                    continue
                seen.add(place)
                top = used.module.partition(".")[0]
                if not top or search == "usual" or not is_in_repository(context, each, top, search):
                    yield each, path, source, used


@rule(
    "CT169",
    Severity.ERROR,
    "a Python model uses a name that the Python of the container does not have",
    source="https://docs.python.org/3/whatsnew/3.10.html#removed",
    applies=lambda platform: known_release(platform) is not None,
)
def missing_in_this_python(context: CheckContext) -> Iterator[Problem]:
    """A Python model uses a name that is not in the standard library of the release's Python.

    Python models run with the image's Python: Python 3.8 up to release 23.04, Python 3.10 from 23.05, and Python 3.12
    from 24.11. Each Python version adds names and removes other names. For example, `collections.Mapping` is not in
    3.10, and `datetime.UTC` is new in 3.11. The table `python_models/reader/data/python_names.json` lists these names.

    The rule also reports the aliases `np.float`, `np.int`, `np.complex`, `np.object`, `np.str` and `np.unicode`, which
    no numpy version for Python 3.12 has. Use Python's own types instead, such as `float`.

    The rule checks only uses that are certain to run. These are uses at the top of the file, in the methods that the
    server calls, and in the functions that these methods call. The rule skips a use under a condition, or in a `try`
    that may catch the error.

    Example:
        $ cdk-triton validate . --platform 24.09/ml.g5.xlarge
        # model/config.pbtxt
        backend: "python"
        # model/1/model.py
        from collections import Mapping

        class TritonPythonModel:
            def execute(self, requests):
                return []

    Instead:
        # model/1/model.py
        from collections.abc import Mapping

        class TritonPythonModel:
            def execute(self, requests):
                return []

    Limits:
        The rule does not check the attributes of classes, such as `str.removeprefix`. The rule skips a model that adds
        directories outside of the repository to `sys.path`, or has its own `triton_python_backend_stub`. The rule does
        not read your own image, and assumes the Python and the numpy of the given release.
    """
    release = known_release(context.platform)
    if release is None or "python" in release.assumed:
        return
    is_own = context.platform is not None and context.platform.image is not None
    for each, path, _, used in _needed(context):
        having = _having(used)
        if having is None or release.python in having:
            continue
        is_numpy = used.module == "numpy"
        owner = f"{'numpy' if is_numpy else f'Python {release.python}'} {of_release(context.platform)}"
        maker = "numpy for Python" if is_numpy else "Python"
        others = f" ({maker} {' and '.join(having)} may have it)" if having else ""
        fix = "use a name that this Python has, or serve with another release"
        if is_numpy:
            fix = f"write {_NUMPY[used.name]!r}, Python's own type"
        elif is_own:
            fix = "use a name that this Python has, or correct the release if your image has another Python"
        yield in_line(
            path,
            used.line,
            f"uses {_whole(used)!r}, which {owner} does not have{others}, so {each.model.name!r} fails with "
            f"{_said(used)}",
            fix,
        )


def _having(used: Used) -> tuple[str, ...] | None:
    """The Pythons that have a name; None if the table does not have the name."""
    if used.module == "numpy" and used.name in _NUMPY:
        return _OLD_NUMPY
    having = pythons_with(used.module or "builtins", used.name)
    return None if having is None else tuple(having)


@rule(
    "CT175",
    Severity.ERROR,
    "a Python model uses a name that triton_python_backend_utils does not have",
    source=backend("python_backend", _STUB, 444, 500),
)
def missing_utility(context: CheckContext) -> Iterator[Problem]:
    """A Python model uses a name of `triton_python_backend_utils` that does not exist, or does not exist yet.

    The server sets `Tensor`, `InferenceRequest`, `InferenceResponse`, `TritonModelException`, `Logger` and some other
    names only after it has imported the model. So these names do not exist yet when the top of the file runs. Do not
    use them there as a base class, in an annotation, or in `from triton_python_backend_utils import Tensor`. Use them
    in functions, and write annotations as strings. `from triton_python_backend_utils import *` does not import these
    names either, so write `import triton_python_backend_utils as pb_utils` and `pb_utils.Tensor`.

    Like CT169, the rule checks only uses that are certain to run.

    Example:
        # model/config.pbtxt
        backend: "python"
        # model/1/model.py
        import triton_python_backend_utils as pb_utils

        def text_of(tensor: pb_utils.Tensor):
            return tensor.as_numpy()

        class TritonPythonModel:
            def execute(self, requests):
                return []

    Instead:
        # model/1/model.py
        import triton_python_backend_utils as pb_utils

        def text_of(tensor: "pb_utils.Tensor"):
            return tensor.as_numpy()

        class TritonPythonModel:
            def execute(self, requests):
                return []

    Limits:
        The rule skips releases after 26.07, which may have more names. It also skips a model that contains a file with
        the module's name, for example for tests, because this file hides the server's module.
    """
    suggestions = Suggestions()
    for each, path, _, used in _needed(context):
        if used.module != MODULE or used.name.startswith("__"):
            continue
        names = utility_names(context.release)
        is_early = used.is_starred or (used.is_loading and used.name in SET_LATER)
        if context.platform is not None and is_older(context.platform, SET_LATE_SINCE):
            is_early = False
        if (used.name in names and not is_early) or not _has_utilities_of_server(context, each):
            continue
        if used.name not in names:
            yield _missing_utility(each, path, used, suggestions.closest(used.name, sorted(names)))
        elif used.is_starred:
            yield _missed_by_star(each, path, used)
        else:
            yield in_line(
                path,
                used.line,
                f"uses {_whole(used)!r} while the server imports the file, but the server sets this name only after "
                f"the import; the server would not load {each.model.name!r}: {_said(used)}",
                "use the name in functions only, and write annotations as strings or with "
                "`from __future__ import annotations`",
            )


@rule(
    "CT180",
    Severity.WARNING,
    "a Python model may use a name that no triton_python_backend_utils has",
    source=backend("python_backend", _STUB, 444, 500),
)
def missing_utility_somewhere(context: CheckContext) -> Iterator[Problem]:
    """A Python model uses, in a function or under a condition, a name that `triton_python_backend_utils` never had.

    The rule also reports such a use of a name that `from triton_python_backend_utils import *` does not import (CT175).
    The server loads the model, but the line fails when Python runs it. The error may appear late, for example if the
    line raises an exception that is rarely needed.

    Example:
        # model/config.pbtxt
        backend: "python"
        # model/1/model.py
        import triton_python_backend_utils as pb_utils

        class TritonPythonModel:
            def execute(self, requests):
                if len(requests) > 64:
                    raise pb_utils.TritonModelExeption("too many requests")
                return []

    Instead:
        # model/1/model.py
        import triton_python_backend_utils as pb_utils

        class TritonPythonModel:
            def execute(self, requests):
                if len(requests) > 64:
                    raise pb_utils.TritonModelException("too many requests")
                return []

    Limits:
        The rule reports only names that no release has, or that `*` imports in no release. It skips a file that tests
        attributes with `hasattr` or `getattr`, or that handles `AttributeError`. Like CT175, it skips releases after
        26.07, and a model that contains a file with the module's name.
    """
    suggestions = Suggestions()
    certain = {(path, used.name) for _, path, _, used in _needed(context) if used.module == MODULE}
    names = utility_names(None)
    seen: set[tuple[PurePosixPath, str]] = set()
    for each, sources in needed_sources(context):
        search = widest(source.search for source in sources.values())
        if not _has_utilities_of_server(context, each) or is_in_repository(context, each, MODULE, search):
            continue
        attributes = names.union(*(source.attributes for source in sources.values()))
        for path, source in sources.items():
            for used in source.utilities:
                if (path, used.name) in certain | seen:
                    continue
                if used.is_starred:
                    seen.add((path, used.name))
                    yield _missed_by_star(each, path, used)
                elif used.name not in attributes and not used.name.startswith("__"):
                    seen.add((path, used.name))
                    yield _missing_utility(each, path, used, suggestions.closest(used.name, sorted(names)))


def _has_utilities_of_server(context: CheckContext, each: BackendFile) -> bool:
    """Whether the model gets the server's own module, and the names of the release are known."""
    is_known = context.release is None or is_at_least(READ_THROUGH, context.release)
    return is_known and not has_module(each, MODULE)


def _missed_by_star(each: BackendFile, path: PurePosixPath, used: Used) -> Problem:
    return in_line(
        path,
        used.line,
        f"uses {used.name!r}, which `from {MODULE} import *` does not import, because the server sets this name only "
        f"after it has imported the file, so {each.model.name!r} fails in this line with NameError: name "
        f"{used.name!r} is not defined",
        f"write `import {MODULE} as pb_utils`, and pb_utils.{used.name}",
    )


def _missing_utility(each: BackendFile, path: PurePosixPath, used: Used, close: str | None) -> Problem:
    return in_line(
        path,
        used.line,
        f"uses {_whole(used)!r}, which the server does not have, so {each.model.name!r} fails in this line with "
        f"{_said(used)}",
        f"did you mean {close!r}?" if close is not None else "use a name that the release's module has",
    )


@rule(
    "CT176",
    Severity.ERROR,
    "a Python model uses a name that nothing defines",
    source=backend("python_backend", _STUB, 2044, 2072),
)
def undefined_name(context: CheckContext) -> Iterator[Problem]:
    """A file of a Python model uses a name that it neither defines nor imports, and that is not built into Python.

    The line fails with `NameError`. In many cases, an import is missing, for example the import of `np` or `List`. Like
    CT169, the rule checks only uses that are certain to run.

    Example:
        # model/config.pbtxt
        backend: "python"
        # model/1/model.py
        class TritonPythonModel:
            def initialize(self, args):
                self.weights = np.zeros(4)

            def execute(self, requests):
                return []

    Instead:
        # model/1/model.py
        import numpy as np

        class TritonPythonModel:
            def initialize(self, args):
                self.weights = np.zeros(4)

            def execute(self, requests):
                return []

    Limits:
        The rule skips a file that imports `*`, or uses `exec`, `eval`, `globals`, `locals` or `vars`.
    """
    suggestions = Suggestions()
    known = names_everywhere()
    for each, path, source, used in _needed(context):
        if not used.module and used.name not in known:
            yield in_line(
                path,
                used.line,
                f"uses {used.name!r}, which the file neither defines nor imports, so {each.model.name!r} fails with "
                f"{_said(used)}",
                _definition(used.name, source, suggestions),
            )


def _definition(name: str, source: PythonSource, suggestions: Suggestions) -> str:
    if name in _USUAL:
        return f"add `import {_USUAL[name]} as {name}`"
    if name in standard_modules(None):
        return f"add `import {name}`"
    close = suggestions.closest(name, sorted(source.names or ()))
    return "define or import this name" if close is None else f"did you mean {close!r}?"


def _whole(used: Used) -> str:
    return f"{used.module}.{used.name}" if used.module else used.name


def _said(used: Used) -> str:
    """Python's error about a missing name."""
    if used.is_import:
        return f"ImportError: cannot import name {used.name!r} from {used.module!r}"
    if used.module:
        return f"AttributeError: module {used.module!r} has no attribute {used.name!r}"
    return f"NameError: name {used.name!r} is not defined"
