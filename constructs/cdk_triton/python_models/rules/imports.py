"""CT166, CT178 and CT192: the packages that Python models import, and the modules that they do not get."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from cdk_triton._wording import listed_in_quotes
from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.backend_files import BackendFile, repository_files
from cdk_triton.checks.derived.configured import completes
from cdk_triton.checks.derived.releases import known_release, of_release
from cdk_triton.checks.registry import Problem, in_line, rule, would_not_load
from cdk_triton.checks.sources import backend, server
from cdk_triton.python_models.environments import ModelEnvironment, environments
from cdk_triton.python_models.modules import (
    has_compiled_file,
    needed_sources,
    own_module,
    provided_modules,
    python_version,
)
from cdk_triton.python_models.reader.backend_utils import MODULE
from cdk_triton.python_models.reader.environment_packages import environment_modules, packed_modules
from cdk_triton.python_models.reader.image_modules import (
    FOREIGN_MODULES,
    installed_modules,
    standard_modules,
)
from cdk_triton.python_models.reader.imports import Imported
from cdk_triton.python_models.reader.source import PythonSource, python_source
from cdk_triton.python_models.search import is_in_repository, widest
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton.findings import Severity


def _is_known(platform: ServingPlatform) -> bool:
    return platform.image is not None or installed_modules(platform.release) is not None


@rule(
    "CT166",
    Severity.WARNING,
    "a Python model imports a package that the image does not have",
    source=server("build.py", 1425, 1455),
    applies=_is_known,
)
def missing_package(context: CheckContext) -> Iterator[Problem]:
    """A Python model imports a module that is not in the image, in the repository or in the model's environment.

    The import fails with `ModuleNotFoundError`. SageMaker's images contain Python's standard library, numpy and few
    other packages. They do not contain pandas, PyTorch, transformers, scikit-learn or an AWS client. The table
    `python_models/reader/data/image_modules.json` lists the modules of each release. There are three ways to provide a
    package: install it into a directory of the model, as in the example below; pack an environment with the recipe
    `WheelEnvironment` or `CondaEnvironment`; or serve with your own image.

    The rule checks only imports that are certain to run. These are imports at the top of the file, in the methods that
    the server calls, and in the functions that these methods call. The rule skips an import under a condition, or in a
    `try` that catches `ImportError`.

    Example:
        $ cdk-triton validate . --platform 25.09/ml.g5.xlarge
        # model/config.pbtxt
        backend: "python"
        # model/1/model.py
        import pandas

        class TritonPythonModel:
            def execute(self, requests):
                return []

    Instead:
        # model/1/vendor/pandas/__init__.py
        # model/1/model.py
        import sys
        from pathlib import Path

        sys.path.insert(0, str(Path(__file__).parent / "vendor"))
        import pandas

        class TritonPythonModel:
            def execute(self, requests):
                return []

    Limits:
        The rule checks only the first part of a module's name, so it accepts `numpy.missing`. If the model adds
        directories of the repository to `sys.path`, the rule accepts a module that is in any directory of the
        repository. After any other change of `sys.path`, the rule accepts every module. The rule checks your own image
        only if `image_modules` in `cdk-triton.toml` lists the modules of the image. The rule checks a model with an
        environment only if the environment is in the repository, is at most 256 MiB in size, and has numpy in its
        `site-packages`.
    """
    provided = provided_modules(context)
    if provided is None or (context.environment is not None and "PYTHONPATH" in context.environment.variables):
        return
    brought = {each.owner.name: _environment_modules(context, each) for each in environments(context)}
    reported = set()
    for each, sources in needed_sources(context):
        brings = brought.get(each.model.name, frozenset())
        search = widest(source.search for source in sources.values())
        if (
            brings is None
            or search == "anywhere"
            or each.files.has(each.model.directory / "triton_python_backend_stub")
        ):
            continue
        for path, source in sources.items():
            for imported in source.needed:
                name = imported.module.partition(".")[0]
                if imported.level or name in provided or name in brings or (path, name) in reported:
                    continue
                if has_compiled_file(each, name):
                    continue  # CT115 compares it with the container
                if not is_in_repository(context, each, name, search):
                    reported.add((path, name))
                    yield _problem(context, each, path, imported)


@rule(
    "CT178",
    Severity.WARNING,
    "a module beside a Python model is hidden by the standard library",
    source=backend("python_backend", "src/pb_stub.cc", 2044, 2072),
)
def hidden_module(context: CheckContext) -> Iterator[Problem]:
    """A Python model imports its own module, but gets the module of this name from the standard library, or numpy.

    The server appends the model's directories to the end of `sys.path`, so Python finds the standard library and numpy
    first. Give the module another name. If the module is beside the model's file, you can also import it with
    `from . import`. Remove a numpy, and other packages that pip installed: with `--no-deps`, it installs only the
    packages that you name.

    Example:
        # model/config.pbtxt
        backend: "python"
        # model/1/queue.py
        LIMIT = 8
        # model/1/model.py
        import queue

        class TritonPythonModel:
            def execute(self, requests):
                return []

    Instead:
        # model/1/model.py
        from . import queue

        class TritonPythonModel:
            def execute(self, requests):
                return []

    Limits:
        The rule does not report a module that any file of the model imports with a relative import, or a module of a
        model that changes `sys.path`. If no release is given, the rule reports only modules that are in the Python of
        every image. The rule does not read your own image, and assumes the Python of the given release.
    """
    version = python_version(context)
    standard = standard_modules(version) - FOREIGN_MODULES | {"numpy"}
    if known_release(context.platform) is None:
        standard &= standard_modules((3, 8)) | {"numpy"}
    seen = set()
    for each, sources in needed_sources(context):
        if widest(source.search for source in sources.values()) != "usual":
            continue
        relative = frozenset[str]().union(*(source.relative for source in sources.values()))
        for path, source in sources.items():
            for imported in source.needed:
                name = imported.module.partition(".")[0]
                if imported.level or name not in standard or name in relative or (path, name) in seen:
                    continue
                module = own_module(each, name)
                if module is None or module.path is None:
                    continue
                seen.add((path, name))
                yield in_line(
                    path,
                    imported.line,
                    f"imports {name!r}, but {each.model.name!r} gets the module of this name from "
                    f"{_hiding(context, name)}, not {module.path}",
                    _visible(each, path, module.path, name),
                )


@rule(
    "CT192",
    Severity.ERROR,
    "a file beside a Python model hides triton_python_backend_utils",
    source=backend("python_backend", "src/pb_stub.cc", 449, 515),
)
def hidden_utilities(context: CheckContext) -> Iterator[Problem]:
    """A Python model has its own `triton_python_backend_utils.py`, which lacks functions that the server needs.

    The server appends the model's directories to `sys.path` before its own directory, so the process of the model gets
    this file. The process needs `deserialize_bytes_tensor` and `serialize_byte_tensor` of the module, and `ModelConfig`
    if the server completes configurations. If one is missing, the server does not load the model. Remove the file,
    because the server has its own. Keep a copy for tests outside of the model's directory.

    Example:
        # model/config.pbtxt
        backend: "python"
        # model/1/triton_python_backend_utils.py
        def get_input_tensor_by_name(request, name):
            return next((each for each in request.inputs() if each.name() == name), None)
        # model/1/model.py
        import triton_python_backend_utils as pb_utils

        class TritonPythonModel:
            def execute(self, requests):
                return []

    Instead:
        # model/1/triton_python_backend_utils.py is removed

    Limits:
        The rule skips a model that changes `sys.path`, or has its own `triton_python_backend_stub`.
    """
    if context.environment is not None and "PYTHONPATH" in context.environment.variables:
        return
    read = python_source(python_version(context))
    wanted = ("deserialize_bytes_tensor", "serialize_byte_tensor", *(["ModelConfig"] if completes(context) else []))
    for each, sources in needed_sources(context):
        module = own_module(each, MODULE)
        file = None if module is None or module.path is None else each.files.file(module.path)
        source = None if file is None or file.path.suffix != ".py" else context.contents(read, file)
        if file is None or not isinstance(source, PythonSource) or source.names is None:
            continue
        if widest(one.search for one in (*sources.values(), source)) != "usual" or each.files.has(
            each.model.directory / "triton_python_backend_stub"
        ):
            continue
        has = source.names.union(*(one.attributes for one in sources.values()))
        missing = [name for name in wanted if name not in has]
        if missing and "__getattr__" not in has:
            found = "the file hides the server's own module of this name, but does not define "
            words = f"module {MODULE!r} has no attribute {missing[0]!r}"
            fix = "remove this file, because the server has its own"
            yield Problem(file.path, would_not_load(each.model, found + listed_in_quotes(missing), words), fix)


def _hiding(context: CheckContext, name: str) -> str:
    """The owner of the module that Python takes, in words."""
    release = known_release(context.platform)
    if name == "numpy":
        return "the image"
    python = "the standard library" if release is None else f"the standard library of Python {release.python}"
    return f"{python} {of_release(context.platform)}".rstrip()


def _visible(each: BackendFile, importer: PurePosixPath, module: PurePosixPath, name: str) -> str:
    """The fix; only the model's file is certainly in a package, which has the modules of the file's directory."""
    whole = module.parent if module.name.startswith("__init__.") else module
    directory = whole.parent
    if whole.name == "numpy":
        return f"remove {whole}, or use this numpy in a packed environment"
    if any(info.startswith(f"{name}-") and info.endswith(".dist-info") for info in each.files.names_in(directory)):
        return f"remove {whole}, which pip installed"
    is_beside = importer == each.path and directory == importer.parent
    return f"give {module} another name" + (f", or import it with `from . import {name}`" if is_beside else "")


def _problem(context: CheckContext, each: BackendFile, path: PurePosixPath, imported: Imported) -> Problem:
    name = imported.module.partition(".")[0]
    release = known_release(context.platform)
    environment = next((one.path for one in environments(context) if one.owner.model is each.model), None)
    if release is not None and name in standard_modules(None):
        reason = f"Python {release.python} of {release.release} does not have this module"
        fix = "import a module that this Python has, or serve with another release"
    elif (found := _elsewhere(context, name)) is not None:
        reason = f"Python does not look where the repository has this module ({found})"
        fix = f"copy {found} into {each.path.parent}, where Python looks"
    elif (found := _at_top(context, imported)) is not None:
        reason = f"Python does not look into the directory of the repository, which has {found}"
        fix = f"copy {found} to {each.path.parent / found}, where Python looks"
    elif environment is not None:
        reason = f"neither the repository nor {environment} has this module"
        fix = "add the package to the environment, or acknowledge CT166 if it is there"
    else:
        is_own = context.platform is not None and context.platform.image is not None
        image = "your image" if is_own or release is None else f"the image of {release.release}"
        reason = f"neither the repository nor {image} has this module"
        fix = f"put the package into {each.path.parent}, or name an environment with EXECUTION_ENV_PATH, or " + (
            "add it to image_modules in cdk-triton.toml if the image has it"
            if is_own
            else "use an image of your own that has the package"
        )
    effect = f"{each.model.name!r} fails with ModuleNotFoundError: No module named {name!r}"
    return in_line(path, imported.line, f"imports {name!r}, but {reason}, so {effect}", fix)


def _elsewhere(context: CheckContext, name: str) -> PurePosixPath | None:
    """The file or package of this name in a place of the repository where Python does not look."""
    for path in repository_files(context):
        if path.name == f"{name}.py":
            return path
        if path.parts[-2:] == (name, "__init__.py"):
            return path.parent
    return None


def _at_top(context: CheckContext, imported: Imported) -> PurePosixPath | None:
    """The file of an imported module from the top of the repository, such as `b/text.py` for `b.text`."""
    names = (imported.module, *(f"{imported.module}.{name}" for name in imported.names))
    paths = (PurePosixPath(f"{name.replace('.', '/')}.py") for name in names)
    files = repository_files(context)
    return next((path for path in paths if files.has(path)), None)


def _environment_modules(context: CheckContext, each: ModelEnvironment) -> frozenset[str] | None:
    """The modules of a model's environment; None if they are not known."""
    if each.path is None:
        return None
    if each.is_directory:
        library = each.path / "lib"
        return environment_modules(
            f"lib/{python}/site-packages/{name}"
            for python in each.files.names_in(library)
            for name in each.files.names_in(library / python / "site-packages")
        )
    return None if each.archive is None else context.contents(packed_modules, each.archive)
