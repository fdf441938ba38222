"""CT115 to CT117: packages that were made elsewhere, beside Python models and in packed environments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import PurePosixPath

from cdk_triton._wording import listed_in_quotes
from cdk_triton.checks.context import CheckContext, per_check
from cdk_triton.checks.derived.backend_files import model_files
from cdk_triton.checks.derived.configured import ConfiguredModel, configured
from cdk_triton.checks.derived.releases import is_older, known_release
from cdk_triton.checks.registry import Problem, rule
from cdk_triton.checks.sources import backend
from cdk_triton.python_models.environments import (
    ModelEnvironment,
    environment_rule,
    environments,
    rejected_member,
)
from cdk_triton.python_models.installed import PROCESSORS
from cdk_triton.python_models.reader.compiled_modules import (
    CompiledModule,
    Distribution,
    PackedFiles,
    compiled_module,
    distribution,
    head_of,
    is_ignored,
    locked_torch,
    packed_files,
    recorded_files,
)
from cdk_triton.python_models.reader.execution_environment import NUMPY_2_SINCE
from cdk_triton.python_models.reader.packed_environment import environment_python
from cdk_triton.triton.findings import Severity

_PACK = "pack the environment on such a machine, or let the recipe WheelEnvironment build it"
_LOCKS = (".txt", ".lock")
_CPU_BUILD = re.compile(r"(?:^|_)cpu(?:_|$)")


@rule(
    "CT115",
    Severity.WARNING,
    "a package of a Python model is compiled for another machine or Python",
    source="https://docs.python.org/3/library/importlib.html#importlib.machinery.EXTENSION_SUFFIXES",
)
def other_machine(context: CheckContext) -> Iterator[Problem]:
    """The compiled modules of a package are for another system, processor or Python than the container's.

    The package comes from another machine, for example from `pip install --target` on a Mac or with another Python, or
    the release has changed since. Python does not find the modules, or cannot load them. So the import of the package
    fails, unless the package can do without them. The local AWS does not show this if the package fits your machine.
    Install the package for the image, with the command for [a directory of the
    model](../recipes.md#a-directory-of-the-model).

    The images have Linux with the GNU C library. They contain Python 3.8 up to release 23.04, Python 3.10 from 23.05,
    and Python 3.12 from 24.11.

    Example:
        $ cdk-triton validate . --platform 25.09/ml.g5.xlarge
        # model/config.pbtxt
        backend: "python"
        # model/1/model.py
        # model/1/vendor/orjson/__init__.py
        # model/1/vendor/orjson/orjson.cpython-311-x86_64-linux-gnu.so

    Instead:
        # model/1/vendor/orjson/orjson.cpython-311-x86_64-linux-gnu.so is removed
        # model/1/vendor/orjson/orjson.cpython-312-x86_64-linux-gnu.so

    Limits:
        The rule accepts a module if a second file of it fits the container. Without a platform, it compares only the
        system. It skips libraries that are not modules, and archives of more than 256 MiB.
    """
    for each, environment, packed in _packages(context):
        misfits: dict[str, list[CompiledModule]] = {}
        for module, reason in _misfits(context, packed.modules):
            misfits.setdefault(reason, []).append(module)
        for reason, modules in misfits.items():
            names = sorted({_module_name(module.path) for module in modules})
            said = f"the compiled module{'s' * (len(names) > 1)} {listed_in_quotes(names, shown=4)}"
            yield Problem(
                modules[0].path if environment is None else environment.path,
                f"{said} of {each.name!r} cannot be imported in the container: compiled for {reason} "
                f"({modules[0].path.name}), but the container has {_container(context)}",
                _install(each, modules) if environment is None else _PACK,
            )


@environment_rule(
    "CT116",
    Severity.ERROR,
    "the archive of an environment has a hard link to a file that it lacks",
    source=backend("python_backend", "src/pb_env.cc", 109, 200),
)
def lost_link(each: ModelEnvironment) -> Iterator[Problem]:
    """A member of the archive is a hard link to a file that the archive does not have before this member.

    The server then does not unpack the environment, and does not load the model. The reason may be that only a part of
    an environment was packed.

    Example:
        # model/config.pbtxt
        backend: "python"
        parameters {
          key: "EXECUTION_ENV_PATH"
          value { string_value: "$$TRITON_MODEL_DIRECTORY/env.tar.gz" }
        }
        # model/env.tar.gz
        bin/activate
        lib/python3.12/os.py
        lib/libz.so = pkgs/zlib/lib/libz.so

    Instead:
        # model/env.tar.gz
        bin/activate
        lib/python3.12/os.py
        lib/libz.so

    Limits:
        The rule skips an archive of more than 256 MiB. It does not report a symbolic link that leads nowhere, because
        the server unpacks it.
    """
    packed = None if each.archive is None else each.owner.context.contents(packed_files, each.archive)
    if packed is None or packed.lost_link is None or rejected_member(each) is not None:
        return  # the last is reported by CT167
    name, target = packed.lost_link
    yield each.unloadable(
        f"the archive has the member {name!r}, a hard link to {target!r}, which is not in the archive before it",
        f"archive_write_header() failed with error code = -25 error message is Hard-link target '{target}' does not "
        "exist",
        "pack the whole environment, with conda-pack or with `tar --hard-dereference -C ENVIRONMENT -czf env.tar.gz .`",
    )


@rule(
    "CT117",
    Severity.WARNING,
    "a package of a Python model does not suit the release or the GPU",
    source="https://github.com/triton-inference-server/python_backend/pull/384",
)
def unsuitable_package(context: CheckContext) -> Iterator[Problem]:
    """A Python model brings numpy 2 for a release before 24.11, or PyTorch without CUDA for a GPU.

    The Python backend of these releases misreads arrays of numpy 2: outputs are empty, or the process of the model
    crashes. A build of PyTorch for the CPU raises `Torch not compiled with CUDA enabled` as soon as code uses the GPU.
    The rule reports such a build if an instance group of the model has `KIND_GPU`.

    Example:
        $ cdk-triton validate . --platform 24.09/ml.g5.xlarge
        # model/config.pbtxt
        backend: "python"
        # model/1/model.py
        # model/1/vendor/numpy-2.2.1.dist-info/METADATA

    Instead:
        # model/1/vendor/numpy-2.2.1.dist-info/METADATA is removed
        # model/1/vendor/numpy-1.26.4.dist-info/METADATA

    Limits:
        The rule reads the names of directories such as `numpy-2.2.1.dist-info` and of files in `conda-meta`, and the
        lock file of a recipe. It skips archives of more than 256 MiB.
    """
    for each, environment, packed in _packages(context):
        on_gpu = any(group.kind == group.KIND_GPU for group in each.config.instance_group)
        for one in packed.distributions:
            where = one.record if environment is None else environment.path
            what = f"{each.name!r} has {one.name} {one.version}{one.build and f' ({one.build})'}"
            platform = context.platform
            if _is_numpy_2(one) and platform is not None and is_older(platform, NUMPY_2_SINCE):
                yield Problem(
                    where,
                    f"{what}, but the Python backend of {platform.release} misreads arrays of numpy 2",
                    f"install numpy<2, or use release {NUMPY_2_SINCE} or newer",
                )
            elif _is_cpu_torch(one) and on_gpu:
                yield Problem(
                    where,
                    f"{what}, a build for the CPU, but instance_group has KIND_GPU, so code that uses the GPU fails: "
                    "Torch not compiled with CUDA enabled",
                    "install a build of PyTorch for CUDA, or set kind: KIND_CPU if the model computes on the CPU",
                )


@per_check
def _packages(context: CheckContext) -> Iterator[tuple[ConfiguredModel, ModelEnvironment | None, PackedFiles]]:
    """What lies beside each Python model, and what is in its packed environment; not of one with its own Python."""
    for each in configured(context):
        if each.model.backend_name == "python" and not _has_own_python(context, each):
            yield each, None, _beside(context, each)
    for environment in environments(context):
        archive = environment.archive
        packed = None if archive is None else context.contents(packed_files, archive)
        if packed is not None and not _has_own_python(context, environment.owner):
            yield environment.owner, environment, packed


def _beside(context: CheckContext, each: ConfiguredModel) -> PackedFiles:
    modules: list[CompiledModule] = []
    distributions: list[Distribution] = []
    files = model_files(context)[each.name]
    is_built = any(files.file(path) is None for path in files)
    for path in sorted(files):
        file = files.file(path)
        if file is None:
            continue  # a build makes it
        module = compiled_module(path, partial(context.contents, head_of, file))
        if module is not None and not is_ignored(module, files.has):
            modules.append(module)
        if (installed := distribution(path)) is not None:
            distributions.append(installed)
        if is_built and path.parent == each.model.directory and path.suffix in _LOCKS:
            locked = context.contents(locked_torch, file)
            distributions += [] if locked is None else [replace(locked, record=path)]
    return PackedFiles(tuple(modules), tuple(distributions), has_activate=False, lost_link=None)


def _has_own_python(context: CheckContext, each: ConfiguredModel) -> bool:
    return model_files(context)[each.name].has(each.model.directory / "triton_python_backend_stub")


def _misfits(context: CheckContext, modules: Iterable[CompiledModule]) -> Iterator[tuple[CompiledModule, str]]:
    """The modules of which no file fits the container, each with what its first file is compiled for."""
    files: dict[tuple[PurePosixPath, str], list[CompiledModule]] = {}
    for module in modules:
        files.setdefault((module.path.parent, module.path.name.partition(".")[0]), []).append(module)
    for variants in files.values():
        reasons = [reason for each in variants if (reason := _reason(context, each)) is not None]
        if len(reasons) == len(variants):
            yield variants[0], reasons[0]


def _reason(context: CheckContext, module: CompiledModule) -> str | None:
    """What a module is compiled for, if that is not the container."""
    if module.system not in (None, "Linux"):
        return module.system
    platform, release = context.platform, known_release(context.platform)
    if platform is not None and module.processor not in (None, PROCESSORS.get(platform.instance.host)):
        return f"the processor {module.processor}"
    if release is None or "python" in release.assumed or module.python in (None, release.python):
        return None
    if _environment_python(module.path) not in (None, release.python):
        return None  # CT156 and CT159 report the whole environment
    return module.python if module.python == "PyPy" else f"Python {module.python}"


def _environment_python(path: PurePosixPath) -> str | None:
    """The Python of the environment in which a file is, packed or unpacked."""
    parts = path.parts
    below = ("/".join(parts[start:]) for start in range(len(parts)) if parts[start] == "lib")
    return next(filter(None, map(environment_python, below)), None)


def _container(context: CheckContext) -> str:
    release = known_release(context.platform)
    machine = "Linux" if context.platform is None else f"Linux on {context.platform.instance.host.replace('_', '-')}"
    return machine if release is None or "python" in release.assumed else f"{machine} with Python {release.python}"


def _install(each: ConfiguredModel, modules: Iterable[CompiledModule]) -> str:
    """The command that replaces the packages."""
    platform = each.context.platform
    release = "RELEASE" if platform is None or platform.release is None else platform.release
    instance = "INSTANCE" if platform is None else platform.instance_type
    packages = sorted({_package(each, module.path) for module in modules})
    directory = packages[0][0]
    names = " ".join(name for parent, name in packages if parent == directory)
    return f"install for the container: cdk-triton vendor {directory} {names} --platform {release}/{instance}"


def _package(each: ConfiguredModel, module: PurePosixPath) -> tuple[PurePosixPath, str]:
    """The directory that pip wrote a module to, and the package to install there.

    pip writes a directory `*.dist-info` beside each package. Its `RECORD` lists the files of the package, which is
    often called otherwise: `PIL` belongs to pillow. Without it, the name is that of the module's directory.
    """
    files = model_files(each.context)[each.name]
    for directory in module.parents:
        infos = sorted(name for name in files.names_in(directory) if name.endswith(".dist-info"))
        for info in infos:
            record = files.file(directory / info / "RECORD")
            recorded = () if record is None else each.context.contents(recorded_files, record)
            if str(module.relative_to(directory)) in recorded:
                return directory, info.partition("-")[0].replace("_", "-")
        if infos:
            return directory, module.relative_to(directory).parts[0].partition(".")[0]
    package = (
        module.parent if files.has(module.parent / "__init__.py") else module.parent / module.name.partition(".")[0]
    )
    return package.parent, package.name


def _module_name(path: PurePosixPath) -> str:
    """The module after the directory in which it is, such as `orjson.orjson`."""
    stem = path.name.partition(".")[0]
    return f"{path.parent.name}.{stem}" if path.parent.name.isidentifier() else stem


def _is_numpy_2(one: Distribution) -> bool:
    return one.name == "numpy" and not one.version.startswith(("0.", "1."))


def _is_cpu_torch(one: Distribution) -> bool:
    is_wheel = one.name == "torch" and one.version.endswith("+cpu")
    return is_wheel or (one.name == "pytorch" and _CPU_BUILD.search(one.build) is not None)
