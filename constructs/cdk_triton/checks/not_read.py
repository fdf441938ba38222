"""The parts of a repository that no rule looks into, so that nobody takes "no findings" for "everything was read".

The rules judge every `config.pbtxt`. Of the files that backends load, they read ONNX files, Python sources, the
signatures of PyTorch models, tree models, the pipelines of DALI, and the networks that TensorRT plans are built from.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.backend_files import BackendFile, backend_files, below, is_pointer, model_files
from cdk_triton.checks.derived.configured import PLATFORMS, completed_pair
from cdk_triton.dali_models.models import DaliPipelineFile, dali_pipelines
from cdk_triton.dali_models.reader.definition import Definition
from cdk_triton.onnx_models.rules.models import has_ort_name
from cdk_triton.python_models.environments import environments
from cdk_triton.python_models.modules import Module, Read, model_modules, python_models
from cdk_triton.python_models.reader.environment_packages import MAX_BYTES
from cdk_triton.python_models.reader.source import NotJudged, PythonSource, SyntaxFault
from cdk_triton.pytorch_models.models import torch_contents
from cdk_triton.pytorch_models.reader.file import TorchFile
from cdk_triton.tensorrt_models.sources import PlanSource, plan_sources
from cdk_triton.tree_models.reader.file import MAX_BYTES as MAX_TREE_BYTES
from cdk_triton.tree_models.reader.file import TooLarge, forest_file
from cdk_triton.triton.findings import NotRead
from cdk_triton.triton.model import Model
from cdk_triton.triton.schema import ModelConfig
from cdk_triton.triton.unreadable import Unreadable

__all__ = ["not_read"]

# Triton's own backends for tests, which load no file (the repositories identity_backend, repeat_backend and
# square_backend of triton-inference-server).
_WITHOUT_FILES = ("identity", "repeat", "square")


def not_read(context: CheckContext) -> tuple[NotRead, ...]:
    """The parts that no rule looked into, by path.

    The result omits what a finding is about: missing files, pointers of Git LFS, and files that the checks could not
    read (CT160, CT174).
    """
    found = {*_files(context), *_models_without_known_files(context), *_environments(context)}
    return tuple(sorted(found))


def _files(context: CheckContext) -> Iterator[NotRead]:
    networks = {source.version: source for source in plan_sources(context)}
    sources = {file.version: source for file, source in python_models(context)}
    pipelines = {pipeline.owner.version: pipeline for pipeline in dali_pipelines(context)}
    for each in backend_files(context):
        if not each.is_there or (each.file is not None and is_pointer(context, each.file)):
            continue
        if each.backend == "tensorrt":
            reason = _reason_of_plan(networks.get(each.version))
        elif each.version in pipelines:
            reason = _reason_of_pipeline(pipelines[each.version])
        elif each.file is None and each.files.has(each.path):
            reason = "the file does not exist before the build"
        elif each.backend == "python":
            reason = _reason_of_python(model_modules(context)[each.version], sources.get(each.version))
        else:
            reason = _reason_of_file(each)
        if reason:
            yield NotRead(str(each.path if each.file is None else each.file.path), each.model.name, reason)


def _reason_of_file(each: BackendFile) -> str:
    if each.backend == "onnxruntime":
        is_other_format = each.file is not None and has_ort_name(each.file)
        return "the checks do not read ONNX Runtime's own format" if is_other_format else ""
    if each.backend == "fil" and each.file is not None:
        content = each.context.contents(forest_file, each.file)
        is_large = isinstance(content, TooLarge)
        return f"the checks do not open tree models of more than {MAX_TREE_BYTES // 2**20} MiB" if is_large else ""
    if each.backend == "pytorch" and each.file is not None and not each.config.runtime:
        return _reason_of_torch(torch_contents(each))
    return f"the checks do not open files of the backend {each.backend!r}"


def _reason_of_pipeline(pipeline: DaliPipelineFile) -> str:
    """The reason for a pipeline of DALI; "" if the rules compare it, or if a finding is about it."""
    content = pipeline.content
    if content is None:
        return "the checks do not know the inputs and outputs of such a pipeline"
    if isinstance(content, NotJudged):
        return f"the definition {content.reason}"
    if not isinstance(content, Definition) or content.failures or content.undefined or len(content.marked) > 1:
        return ""
    if content.inputs is None and content.unknown:
        return f"the definition {content.unknown}, so other code may make inputs"
    unknown = [side for side in ("inputs", "outputs") if getattr(content, side) is None]
    return f"the definition does not show the {' and '.join(unknown)} of the pipeline" if unknown else ""


def _reason_of_torch(read: TorchFile | Unreadable | None) -> str:
    """The reason for a file of PyTorch; "" if a finding is about it."""
    if not isinstance(read, TorchFile):
        return ""
    if read.kind == "mobile":
        return "the checks do not read the FlatBuffer format of TorchScript"
    if read.kind == "torchscript" and read.has_forward and read.forward is None:
        return "the code of the model has no signature of forward that the checks can read"
    if read.compiled is not None and read.compiled.call_spec is None and "model" in read.compiled.names:
        return "the archive does not contain the call specification of the model as text"
    return ""


def _reason_of_plan(source: PlanSource | None) -> str:
    if source is None:
        return "the network of the plan is not in the repository"
    return "" if source.onnx is not None else f"the network of the plan, {source.network.path}, cannot be read"


def _reason_of_python(module: Module | str, source: Read | None) -> str:
    if not isinstance(module, Module) or isinstance(source, SyntaxFault | NotJudged):
        return ""  # a finding has it
    if source is None:
        return "the module of the model is not a source file"
    if not isinstance(source, PythonSource):
        return f"the source {source.reason}"
    model = source.model
    if source.may_have_model and not source.instead and (model is None or not (model.is_complete or model.methods)):
        return (
            "the class TritonPythonModel, or a base class, is in another module or may be changed by other code, so "
            "its methods were not checked"
        )
    return ""


def _models_without_known_files(context: CheckContext) -> Iterator[NotRead]:
    known = {each.version for each in backend_files(context)}
    for model in context.loaded_models:
        for version in model.served_versions:
            directory = model.directory / str(version)
            if version not in model.versions or directory in known:
                continue
            if reason := _reason_of_model(context, model, directory):
                for path in _libraries(context, model, directory) or [directory]:
                    yield NotRead(str(path), model.name, reason)


def _reason_of_model(context: CheckContext, model: Model, version: PurePosixPath) -> str:
    """The reason why a version without a known file was not read; "" if a finding has it."""
    platform, backend = completed_pair(context, model)
    if model.is_ensemble or not backend or backend in _WITHOUT_FILES or (not platform and backend in PLATFORMS):
        return ""
    if model.config_error is not None:
        is_tolerated = model.config is not None
        return "config.pbtxt has a field that only a newer schema may have" if is_tolerated else ""
    if model.config is not None and (reason := _reason_of_name(context, model.config, model, version)):
        return reason
    if backend == "fil":
        return ""  # CT812 has a model_type without a known file
    return f"the checks do not know which files the backend {backend!r} loads"


def _reason_of_name(context: CheckContext, config: ModelConfig, model: Model, version: PurePosixPath) -> str:
    """The reason in the fields that name the file; "" if there is none."""
    name, of_gpu = config.default_model_filename, config.cc_model_filenames
    if of_gpu and context.platform is None:
        return "the GPU determines the file (cc_model_filenames), and no serving platform is given"
    if context.platform is not None and context.platform.instance.compute_capability in of_gpu:
        name = of_gpu[context.platform.instance.compute_capability]
    is_elsewhere = name and not below(version, name).is_relative_to(model.directory)
    return "the configuration names a file outside the directory of the model" if is_elsewhere else ""


def _libraries(context: CheckContext, model: Model, directory: PurePosixPath) -> list[PurePosixPath]:
    """The libraries of the model's own backend, in the version's or in the model's directory."""
    library = f"libtriton_{completed_pair(context, model)[1]}.so"
    files = model_files(context)[model.name]
    return [path / library for path in (directory, model.directory) if files.has(path / library)]


def _environments(context: CheckContext) -> Iterator[NotRead]:
    for each in environments(context):
        if each.archive is not None and each.archive.size > MAX_BYTES:
            reason = f"the checks do not open packed environments of more than {MAX_BYTES // 2**20} MiB"
            yield NotRead(str(each.archive.path), each.owner.name, reason)
