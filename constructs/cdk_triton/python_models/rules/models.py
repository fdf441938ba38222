"""CT140, CT141, CT160, CT161 and CT181: whether Python understands a model's source and what it imports.

The source is compiled, never executed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from cdk_triton.checks.context import CheckContext, per_check
from cdk_triton.checks.derived.backend_files import BackendFile
from cdk_triton.checks.derived.releases import known_release
from cdk_triton.checks.registry import Problem, rule, rules_about, would_not_load
from cdk_triton.checks.sources import backend
from cdk_triton.python_models.modules import ImportedModule, Read, imported_modules, needed_modules, python_models
from cdk_triton.python_models.reader.source import NotJudged, PythonSource, SyntaxFault
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.releases import releases

_STUB = "src/pb_stub.cc"
_NEEDS_PYTHON = re.compile(r"only supported in Python 3\.(\d+)")  # of Python's parser


@dataclass(frozen=True)
class _Compiled:
    """A file that the server compiles for a model; `by` is how the model gets to the file if it is another one."""

    owner: BackendFile
    path: PurePosixPath
    by: str
    source: Read

    def unloadable(self, line: int, found: str, words: str, fix: str) -> Problem:
        """A problem of a line for which the server does not load the model; `words` are Python's."""
        message = would_not_load(self.owner.model, f"{found}{self.by}", words)
        return Problem(self.path, message, fix, line=line)


@per_check
def _compiled(context: CheckContext) -> Iterator[_Compiled]:
    seen = set()
    for each, source in python_models(context):
        seen.add(each.path)
        yield _Compiled(each, each.path, "", source)
    for imported in imported_modules(context):
        if imported.path is not None and imported.source is not None and imported.path not in seen:
            seen.add(imported.path)
            by = f"; {imported.importer} imports this file in line {imported.line}" if imported.line else ""
            yield _Compiled(imported.owner, imported.path, by, imported.source)


_compiled_rule = rules_about(_compiled)


@_compiled_rule(
    "CT140",
    Severity.ERROR,
    "a Python model has a syntax error",
    source=backend("python_backend", _STUB, 500, 525),
)
def syntax_error(each: _Compiled) -> Iterator[Problem]:
    """The file of a Python model, or a module of the model that this file imports, is not valid Python.

    The server does not load the model. The check compiles the file, because Python finds some faults only during
    compilation. These faults are `await` in a function without `async`, `return` outside of a function,
    `from __future__` that is not first, and an expression that is nested too deeply.

    Example:
        # model/config.pbtxt
        backend: "python"
        # model/1/model.py
        class TritonPythonModel:
            def execute(self, requests)
                return []

    Instead:
        # model/1/model.py
        class TritonPythonModel:
            def execute(self, requests):
                return []

    Limits:
        If the Python that runs the checks is older than the container's, CT160 reports syntax that only the container's
        Python has. The rule does not check modules that the file imports in a function or under a condition.
    """
    source = each.source
    if isinstance(source, SyntaxFault) and source.in_every_version:
        yield each.unloadable(
            source.line,
            f"line {source.line} is not valid Python ({source.reason})",
            source.error,
            "correct the line" if source.error == "SyntaxError" else "write it with less nesting, as data or a loop",
        )


@rule(
    "CT141",
    Severity.ERROR,
    "a Python model uses syntax that the container's Python does not support",
    source="https://github.com/triton-inference-server/python_backend#building-custom-python-backend-stub",
    applies=lambda platform: known_release(platform) is not None,
)
def newer_syntax(context: CheckContext) -> Iterator[Problem]:
    """A file of a Python model uses syntax that the image's Python does not have.

    The server does not load the model. The images contain Python 3.8 up to release 23.04, Python 3.10 from 23.05, and
    Python 3.12 from 24.11. Write the line without this syntax, or serve with a newer release.

    Example:
        $ cdk-triton validate . --platform 23.03/ml.g5.xlarge
        # model/config.pbtxt
        backend: "python"
        # model/1/model.py
        class TritonPythonModel:
            def execute(self, requests):
                match len(requests):
                    case 0:
                        return []

    Instead:
        # model/1/model.py
        class TritonPythonModel:
            def execute(self, requests):
                if not requests:
                    return []

    Limits:
        The rule finds newer statements, but not every detail of newer syntax. For example, the rule accepts nested
        quotes in f-strings for Python 3.10, although only Python 3.12 has them.
    """
    release = known_release(context.platform)
    if release is None or "python" in release.assumed:
        return
    for each in _compiled(context):
        source = each.source
        if isinstance(source, SyntaxFault) and not source.in_every_version:
            yield each.unloadable(
                source.line,
                f"line {source.line} has syntax that Python {release.python} of {release.release} does not have "
                f"({source.reason})",
                "SyntaxError",
                f"write the line without this syntax, or serve with {_first_release_with(source.reason)}",
            )


def _first_release_with(reason: str) -> str:
    """The first release whose Python has the syntax, if the parser's message contains the version."""
    needed = _NEEDS_PYTHON.search(reason)
    minor = int(needed[1]) if needed is not None else None
    since = next((row.release for row in releases() if minor and int(row.python.partition(".")[2]) >= minor), None)
    return "a newer release" if since is None else f"{since} or newer"


@_compiled_rule(
    "CT160",
    Severity.WARNING,
    "the Python that runs the checks cannot judge a Python model",
    source="https://docs.python.org/3/whatsnew/3.12.html#pep-701-syntactic-formalization-of-f-strings",
)
def not_judged(each: _Compiled) -> Iterator[Problem]:
    """The Python that runs the checks cannot compile the file, but the container's Python may be able to.

    The file uses the syntax of a newer Python, or its code is nested too deeply for the compiler of the checks' Python.
    The other rules do not check this file. Run the checks with the container's Python, or acknowledge the warning.

    Example:
        # model/config.pbtxt
        backend: "python"
        # model/1/model.py
        class TritonPythonModel:
            def execute(self, requests):
                print(f"{", ".join(map(str, requests))}")
                return []

    Instead:
        # model/1/model.py
        class TritonPythonModel:
            def execute(self, requests):
                names = ", ".join(map(str, requests))
                print(f"{names}")
                return []

    Limits:
        The rule reports the example only if Python 3.11 runs the checks. Python 3.12 supports all the syntax that the
        containers' Python supports.
    """
    if isinstance(each.source, NotJudged):
        yield Problem(
            each.path,
            f"the checks skip this file of {each.owner.model.name!r}, because it {each.source.reason}{each.by}",
            "run the checks with the container's Python, or acknowledge CT160",
        )


@rule(
    "CT161",
    Severity.ERROR,
    "a Python model imports a module of its own that is missing",
    source=backend("python_backend", _STUB, 2062, 2072),
)
def missing_module(context: CheckContext) -> Iterator[Problem]:
    """A relative import, or an import from a package beside the file, names a module that does not exist.

    The server imports the file as a module of the package `1`, or of another version's number. So `from .` refers to
    the version's directory, and `from ..` fails, because the package has no parent package. An absolute import, such as
    `import text`, finds a module in the version's directory or in the model's directory.

    If an import at the top of a file fails, the server does not load the model. The rule also checks an import in a
    function that certainly runs: the server calls the function, or such a function calls it.

    Example:
        # model/config.pbtxt
        backend: "python"
        # model/1/model.py
        from .text import clean

        class TritonPythonModel:
            def execute(self, requests):
                return []

    Instead:
        # model/1/text.py
        def clean(text):
            return text

    Limits:
        The rule skips imports under a condition, and packages that an environment or the image may contain.
    """
    at_load = [each for each in imported_modules(context) if each.said]
    places = {(each.importer, each.line) for each in at_load}
    later = [each for each in needed_modules(context) if each.said and (each.importer, each.line) not in places]
    for each in (*at_load, *later):
        error = "ModuleNotFoundError" if each.said.startswith("No module") else "ImportError"
        name = repr(each.owner.model.name)
        effect = f" when {name} runs this line" if each in later else f", so the server would not load {name}"
        yield Problem(
            each.importer,
            f"the import in line {each.line} fails{effect}: {error}: {each.said}",
            _fix_of_import(each),
            line=each.line,
        )


def _fix_of_import(each: ImportedModule) -> str:
    if each.said.startswith("attempted relative import"):
        return "write an absolute import, without leading dots"
    stem = each.said.rstrip("'").rpartition(".")[2]
    if any(path.name.startswith(f"{stem}.") and path.suffix in (".so", ".pyd") for path in each.owner.files):
        return "install the package for the container, as CT115 says"
    return "add the file to the version's directory, or correct the import"


@_compiled_rule(
    "CT181",
    Severity.ERROR,
    "Python rejects a class of a Python model",
    source=backend("python_backend", _STUB, 2062, 2072),
)
def rejected_class(each: _Compiled) -> Iterator[Problem]:
    """A class has bases that Python cannot combine, or `__slots__` that conflict with other names of the class.

    Python raises an error at the class statement, so the import of the file fails and the server does not load the
    model.

    Example:
        # model/config.pbtxt
        backend: "python"
        # model/1/model.py
        class Base:
            pass

        class TritonPythonModel(object, Base):
            def execute(self, requests):
                return []

    Instead:
        # model/1/model.py
        class Base:
            pass

        class TritonPythonModel(Base):
            def execute(self, requests):
                return []

    Limits:
        The rule looks only at classes at the top of a file, and only if their bases are built into Python or are in the
        same file.
    """
    rejected = each.source.rejected if isinstance(each.source, PythonSource) else None
    if rejected is not None:
        yield each.unloadable(
            rejected.line,
            f"Python cannot create the class {rejected.name!r} in line {rejected.line}",
            rejected.said,
            "correct the bases, the keyword arguments or the __slots__ of the class",
        )
