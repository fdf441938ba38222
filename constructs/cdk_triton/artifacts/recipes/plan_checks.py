"""Checks whether a TensorRT plan can be built for a model, on a platform: the errors of `TensorRTPlan.validate`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath
from posixpath import normpath
from typing import TYPE_CHECKING, Final

from cdk_triton.artifacts.recipes.trtexec import newest_with, oldest_with, possible_versions, trtexec_has_option
from cdk_triton.errors import ConfigurationError
from cdk_triton.onnx_models.reader.file import OnnxFile, onnx_file
from cdk_triton.onnx_models.reader.graph import onnx_graphs
from cdk_triton.onnx_models.reader.runtime import has_operator
from cdk_triton.tensorrt_models.recipe import dims_in_plan, open_shape
from cdk_triton.triton.releases import release as release_facts
from cdk_triton.triton.schema import ModelConfig, enum_name
from cdk_triton.triton.unreadable import Unreadable

if TYPE_CHECKING:
    from cdk_triton.sagemaker import ServingPlatform
    from cdk_triton.triton import Model, ModelRepository, RepositoryFile

__all__ = [
    "PLAN_NAME",
    "check_comparable",
    "check_gpu",
    "check_model",
    "check_options",
    "check_ranges",
    "check_shapes_are_known",
    "file_at",
    "network_size",
    "read_network",
    "required_release",
]

PLAN_NAME: Final = "model.plan"
"""The file that the TensorRT backend loads unless a configuration names another one."""


def check_model(recipe: str, model: Model) -> ModelConfig:
    """The configuration of a model that can load a plan called `model.plan`.

    Raises:
        ConfigurationError: the configuration cannot be read, or its model loads something else.
    """
    if model.config_error is not None:
        raise ConfigurationError(f"{recipe} needs the configuration of its model: {model.config_error}")
    config = model.config or ModelConfig()
    if model.backend_name != "tensorrt":
        backend = f"the backend {model.backend_name!r}" if model.backend_name else "no backend"
        raise ConfigurationError(
            f"{recipe} builds a plan, which only the TensorRT backend loads, but {model.config_path} has {backend}: "
            'write platform: "tensorrt_plan" there'
        )
    named = [config.default_model_filename, *config.cc_model_filenames.values()]
    other = next((name for name in named if name not in ("", PLAN_NAME)), None)
    if other is not None:
        raise ConfigurationError(
            f"{recipe} writes {PLAN_NAME}, but {model.config_path} makes the server load {other!r}: remove "
            "default_model_filename and cc_model_filenames"
        )
    return config


def check_shapes_are_known(recipe: str, config: ModelConfig) -> None:
    """Reject a configuration that does not determine an optimisation profile.

    Raises:
        ConfigurationError: the configuration leaves a shape open.
    """
    if reason := open_shape(config):
        raise ConfigurationError(
            f"no optimisation profile can be derived for {recipe}, because {reason}: declare the smallest, the usual "
            f"and the largest shape, batch included, such as profiles=[{_example_profile(config)}]"
        )


def _example_profile(config: ModelConfig) -> str:
    """With 1, 128 and 512 for open dimensions."""
    if not config.input:
        return "{'input': ((1, 3, 224, 224), (8, 3, 224, 224), (16, 3, 224, 224))}"
    most = config.max_batch_size
    shapes = []
    for tensor in config.input:
        each = []
        for batch, size in ((1, 1), (max(most // 2, 1), 128), (most, 512)):
            dims = [size if dim == -1 else dim for dim in dims_in_plan(tensor)]
            each.append(tuple([batch, *dims] if most > 0 else dims))
        shapes.append(f"{tensor.name!r}: {tuple(each)}")
    return f"{{{', '.join(shapes)}}}"


def check_ranges(recipe: str, model: Model, config: ModelConfig, names: Iterable[str]) -> None:
    """Reject ranges of random numbers for names that are not integer inputs, if the configuration lists its inputs.

    Raises:
        ConfigurationError: a name is not that of an integer input.
    """
    types = {tensor.name: enum_name(tensor, "data_type") for tensor in config.input}
    for name in names:
        if types and "INT" not in types.get(name, ""):
            listed = ", ".join(f"{each} {kind}" for each, kind in types.items())
            raise ConfigurationError(
                f"the parity of {recipe} has a range for {name!r}, which is not an integer input of "
                f"{model.config_path} ({listed}): remove the range"
            )


def check_comparable(recipe: str, repository: ModelRepository, path: str) -> None:
    """Reject a comparison with ONNX Runtime for a network that no ONNX Runtime loads, because of an operator.

    The parser of TensorRT takes the names of its plugins, and operators of newer opsets than the file declares. A
    plugin in ONNX's own domain whose schema ONNX Runtime has, such as `EfficientNMS_TRT`, passes.

    Raises:
        ConfigurationError: the network has such an operator.
    """
    file = file_at(repository, path)
    verdict = None if file is None else onnx_graphs([file.source]).get(file.source)
    if verdict is None:
        return
    foreign = (fault for fault in verdict.foreign if not has_operator(fault.domain, fault.operator, None))
    unknown = (fault for fault in verdict.faults if fault.kind in ("operator", "newer"))
    if (fault := next(iter((*foreign, *unknown)), None)) is not None:
        raise ConfigurationError(
            f"{recipe} compares its plan with ONNX Runtime, which does not have {fault.subject} of {path}: add "
            "parity=None, or correct the operator if it is misspelt"
        )


def required_release(recipe: str, platform: ServingPlatform) -> str:
    """The release whose TensorRT builds the plan.

    Raises:
        ConfigurationError: the serving platform has no release.
    """
    if platform.release is None:
        raise ConfigurationError(
            f"{recipe} chooses the options of trtexec by the release, but the serving platform has a custom image "
            "without a release: give the release of the image too, such as release='25.09'"
        )
    return platform.release


def check_options(recipe: str, options: Iterable[str], release: str) -> None:
    """Reject an option that the trtexec of a release does not have.

    Raises:
        ConfigurationError: the trtexec of the release does not have an option.
    """
    possible = possible_versions(release)
    for option in options:
        if any(trtexec_has_option(option, version) for version in possible):
            continue
        oldest = tuple(map(int, oldest_with(option).split(".")))
        bound = f"from {oldest_with(option)} on" if oldest > possible[0] else f"up to {newest_with(option)}"
        raise ConfigurationError(
            f"{recipe} needs trtexec's option {option}, which TensorRT has {bound}, but Triton {release} has TensorRT "
            f"{release_facts(release).tensorrt}: remove the argument of the recipe that needs the option, or serve "
            "with another release"
        )


def check_gpu(recipe: str, platform: ServingPlatform, compatibility: str | None, workspace_mib: int | None) -> None:
    """Reject settings that the GPU does not support.

    Raises:
        ConfigurationError: the GPU is too old for a plan of that compatibility, or has less memory than the workspace.
    """
    capability = tuple(map(int, platform.compute_capability.split(".")))
    if compatibility == "ampere+" and capability < (8, 0):  # NvInfer.h, HardwareCompatibilityLevel::kAMPERE_PLUS
        raise ConfigurationError(
            f"{recipe} has hardware_compatibility='ampere+', which TensorRT builds on Ampere and newer GPUs only, but "
            f"{platform.instance_type} has the {platform.gpu} (compute capability {platform.compute_capability}): "
            "remove the argument, or serve on an instance type such as ml.g5.xlarge"
        )
    if workspace_mib is not None and workspace_mib > platform.gpu_memory_gb * 1024:
        raise ConfigurationError(
            f"{recipe} has workspace_mib={workspace_mib}, but the {platform.gpu} has {platform.gpu_memory_gb} GB: "
            "lower the number, or omit workspace_mib to use all memory of the GPU"
        )


def file_at(repository: ModelRepository, path: str | PurePosixPath) -> RepositoryFile | None:
    """A file of the repository, or None."""
    return next((file for file in repository.files if file.path == PurePosixPath(path)), None)


def read_network(recipe: str, repository: ModelRepository, path: str) -> OnnxFile | None:
    """The description in the network's file; None if the app cannot read it, because it is not in the repository.

    Raises:
        ConfigurationError: the file is not an ONNX file, or its external data is missing.
    """
    file = file_at(repository, path)
    if file is None:
        return None
    read = onnx_file(file.source)
    if isinstance(read, Unreadable):
        raise ConfigurationError(f"the network {path} of {recipe} {read.reason}; export the network again")
    for place in _external_files(file, read):
        if file_at(repository, place) is None:
            raise ConfigurationError(
                f"the network {path} of {recipe} has weights in {place}, which is not in the repository: add that file "
                "to the repository"
            )
    return read


def network_size(repository: ModelRepository, path: str) -> int | None:
    """The bytes of a network and its external data, or None where it is not in the repository."""
    file = file_at(repository, path)
    if file is None:
        return None
    read = onnx_file(file.source)
    places = _external_files(file, read) if isinstance(read, OnnxFile) else []
    return file.size + sum(beside.size for place in places if (beside := file_at(repository, place)) is not None)


def _external_files(file: RepositoryFile, network: OnnxFile) -> list[PurePosixPath]:
    return sorted({PurePosixPath(normpath(file.path.parent / data.location)) for data in network.external_data})
