"""`TensorRTPlan`: an ONNX network becomes the TensorRT plan that the server loads.

The build program reads this step in its `plan.json` (`cdk_triton.artifacts.build_plan`)::

    {"recipe": "tensorrt_plan",
     "name": "the TensorRT plan of bert",
     "onnx": "bert/bert.onnx",                 the network, relative to the repository
     "plan": "bert/1/model.plan",              the file to write
     "flags": ["--buildOnly", …],              trtexec's options, without --onnx and --saveEngine
     "flags_if_static": [...] | null,          what to run instead if trtexec ends with "Static model does not take
                                               explicit shapes": a network that synth could not read may have no
                                               dynamic dimension, and trtexec rejects a profile then. null: cannot be
     "plugins": ["bert/libnms.so"],            libraries that trtexec loads, for the build and for each run
     "tensorrt_major": 10,                     what the flags were made for; with another one nothing is built
     "profiles": [{"ids": {"min": [1, 128], "opt": [16, 128], "max": [128, 128]}}, …],
     "inputs":  [{"name": "ids", "data_type": "TYPE_INT32", "dims": [-1, 128]}, …],
     "outputs": [{"name": "out", "data_type": "TYPE_FP32", "dims": [-1, 128, 768]}, …],
                                               as config.pbtxt has them, the batch dimension (-1) included and reshapes
                                               applied; -1: any size. [] where config.pbtxt leaves them to the server
     "parity": {"tolerance": {"absolute": 0.01, "relative": 0.02},
                "ranges": {"ids": [0, 30521]}, "seed": 0} | null}
                                               null: switched off, which the manifest shows. An output holds if
                                               max|plan - reference| <= absolute + relative * max|reference| over the
                                               tensor, and NaN and infinities are at the same places in both.
                                               Integer inputs that `ranges` does not name get zeros and ones. With
                                               "data": "bert/inputs.npz", the inputs are its arrays instead
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final, Literal, get_args

from cdk_triton._arguments import one, require_type
from cdk_triton.artifacts.recipes.parity import Parity, parity_document, parity_parameters
from cdk_triton.artifacts.recipes.parity_data import check_data
from cdk_triton.artifacts.recipes.plan_checks import (
    PLAN_NAME,
    check_comparable,
    check_gpu,
    check_model,
    check_options,
    check_ranges,
    check_shapes_are_known,
    file_at,
    network_size,
    read_network,
    required_release,
)
from cdk_triton.artifacts.recipes.plugins import check_plugins, declared_plugins
from cdk_triton.artifacts.recipes.precision import PRECISIONS, Precision, check_precision, precision_flags
from cdk_triton.artifacts.recipes.profiles import (
    Shapes,
    check_profiles,
    declared_profiles,
    profile_documents,
    shape_flags,
)
from cdk_triton.artifacts.recipes.s3_file import S3File
from cdk_triton.artifacts.recipes.trtexec import major_version
from cdk_triton.artifacts.recipes.values import model_of, one_of, path_in_model, whole_number
from cdk_triton.onnx_models.reader.file import OnnxFile
from cdk_triton.onnx_models.reader.types import NetworkTypes, network_types
from cdk_triton.tensorrt_models.recipe import Profile, configured_profile, open_shape
from cdk_triton.triton.schema import ModelConfig, ModelInput, ModelOutput, enum_name
from cdk_triton.triton.versions import LARGEST_VERSION

if TYPE_CHECKING:
    from cdk_triton.sagemaker import ServingPlatform
    from cdk_triton.triton import ModelRepository

__all__ = ["HardwareCompatibility", "TensorRTPlan"]

HardwareCompatibility = Literal["ampere+", "same_compute_capability"]

_PARITY: Final = one(lambda value: isinstance(value, Parity), "write Parity(…), or None for no comparison")

_S3_NAME: Final = "model.onnx"
_TRTEXEC_NAMES: Final = {"ampere+": "ampere+", "same_compute_capability": "sameComputeCapability"}
_LARGEST_WORKSPACE_MIB: Final = 1 << 20
# A build tries kernels: it takes longer the larger the network is, and once more for each profile. Guesses, all three.
_MINUTES_PER_PLAN: Final = 2.0
_MINUTES_PER_100_MB: Final = 1.0
_UNKNOWN_NETWORK_MB: Final = 500.0


@dataclass(frozen=True)
class TensorRTPlan:
    """Builds `model.plan` of a TensorRT model from an ONNX file with trtexec, on the GPU that serves the model.

    The build then loads and runs the plan. It compares the plan's inputs and outputs with `config.pbtxt`, and the
    plan's results with the results of ONNX Runtime. The archive contains neither the ONNX file nor its external data.

    Attributes:
        model: the directory of the TensorRT model in the repository; "." if the repository is the model.
        onnx: the ONNX file, as a path relative to the model's directory or as an `S3File`. The path can name a file
            that another recipe writes. An `S3File` must contain all its weights.
        version: the number of the version directory that gets the plan, at least 1.
        profiles: the shapes that the plan accepts, one mapping for each optimisation profile: input → min, opt and max
            shape, including the batch dimension. None: one profile from `config.pbtxt`, with batches of 1 to
            `max_batch_size`, optimised for the largest batch. If `config.pbtxt` leaves a shape open, for example by a
            dimension of -1 or a ragged batch, `profiles` is required.
        precision: the precision of the plan's computations. "fp32" computes in TF32 if the GPU supports TF32. "fp16"
            allows FP16, and "bf16" allows BF16, wherever TensorRT finds it faster. "int8" is for a network with
            QuantizeLinear and DequantizeLinear, and allows FP16 for the other computations. "strongly_typed" keeps the
            types of the ONNX file for every tensor. From TensorRT 11 on, all networks are strongly typed, so any other
            value only states the types of the network, and synth rejects a value that does not match them. If synth
            cannot read the network, as with an `S3File`, it accepts "fp32" without a comparison, and otherwise only
            "strongly_typed".
        workspace_mib: memory for the kernels during the build, in MiB. None: all of the GPU's memory.
        optimization_level: 0 (fastest build) to 5 (fastest plan). None: TensorRT's default, 3.
        hardware_compatibility: which other GPUs can run the plan, "ampere+" or "same_compute_capability". None: only
            GPUs of the kind that built the plan, which gives the fastest plan and is enough for serving.
        parity: how the build compares the plan with ONNX Runtime. None: no comparison.
        plugins: libraries with TensorRT plugins of your own, which trtexec loads for the build, and the server when it
            starts. Each is a `.so` file for the image's TensorRT, at a path relative to the model's directory. ONNX
            Runtime does not have the operators of these plugins, so a plan with plugins needs `parity=None`. A
            multi-model endpoint cannot load the libraries.

    Raises:
        ConfigurationError: a value has the wrong type or is out of its range, or a path leaves the model's directory.
    """

    model: str
    onnx: str | S3File = _S3_NAME
    version: int = 1
    profiles: Sequence[Mapping[str, Shapes]] | None = None
    precision: Precision = "fp32"
    workspace_mib: int | None = None
    optimization_level: int | None = None
    hardware_compatibility: HardwareCompatibility | None = None
    parity: Parity | None = field(default_factory=Parity)
    plugins: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Check the values by themselves."""
        path_in_model(self.model, _S3_NAME, "onnx")
        if not isinstance(self.onnx, S3File):
            path_in_model(self.model, self.onnx, f"onnx of {self}")
        whole_number(self.version, f"version of {self}", 1, LARGEST_VERSION)
        if self.profiles is not None:
            object.__setattr__(self, "profiles", declared_profiles(self.profiles, str(self)))
        one_of(self.precision, f"precision of {self}", PRECISIONS)
        if self.workspace_mib is not None:
            whole_number(self.workspace_mib, f"workspace_mib of {self}", 1, _LARGEST_WORKSPACE_MIB)
        if self.optimization_level is not None:
            whole_number(self.optimization_level, f"optimization_level of {self}", 0, 5)
        if self.hardware_compatibility is not None:
            words = get_args(HardwareCompatibility)
            one_of(self.hardware_compatibility, f"hardware_compatibility of {self}", words)
        object.__setattr__(self, "plugins", declared_plugins(self.model, self.plugins, str(self)))
        if self.parity is not None:
            require_type(f"parity of {self}", self.parity, _PARITY)
            if self.parity.data is not None:
                path_in_model(self.model, self.parity.data, f"the parity's data of {self}")

    def __str__(self) -> str:
        return f"TensorRTPlan({self.model!r})"

    @property
    def produces(self) -> tuple[str, ...]:
        """The plan."""
        return (PurePosixPath(self.model, str(self.version), PLAN_NAME).as_posix(),)

    @property
    def network(self) -> str:
        """The ONNX file, relative to the repository."""
        return PurePosixPath(self.model, _S3_NAME if isinstance(self.onnx, S3File) else self.onnx).as_posix()

    @property
    def consumes(self) -> tuple[str, ...]:
        """The ONNX file and the data of the comparison. The archive omits them, and external data of the ONNX file."""
        return (self.network,) if self._data is None else (self.network, self._data)

    @property
    def _data(self) -> str | None:
        if self.parity is None or self.parity.data is None:
            return None
        return PurePosixPath(self.model, self.parity.data).as_posix()

    @property
    def plugin_files(self) -> tuple[str, ...]:
        """The libraries with plugins, relative to the repository. The archive contains them."""
        return tuple(PurePosixPath(self.model, path).as_posix() for path in self.plugins)

    @property
    def s3_files(self) -> Mapping[str, S3File]:
        """The ONNX file if it is in S3."""
        return {self.network: self.onnx} if isinstance(self.onnx, S3File) else {}

    def parameters(self) -> dict[str, object]:
        """The values that are part of the artifact key."""
        return {
            "recipe": "tensorrt_plan",
            "model": self.model,
            "onnx": {"sha256": self.onnx.sha256} if isinstance(self.onnx, S3File) else self.network,
            "version": self.version,
            "profiles": None if self.profiles is None else profile_documents(self._declared),
            "precision": self.precision,
            "workspace_mib": self.workspace_mib,
            "optimization_level": self.optimization_level,
            "hardware_compatibility": self.hardware_compatibility,
            "parity": None if self.parity is None else parity_parameters(self.parity),
            **({"plugins": list(self.plugin_files)} if self.plugins else {}),
        }

    @property
    def _declared(self) -> tuple[Profile, ...]:
        return () if self.profiles is None else declared_profiles(self.profiles, str(self))

    def _shape_profiles(self, config: ModelConfig) -> tuple[Profile, ...]:
        """The declared profiles, or the configuration's own; empty if that leaves a shape open."""
        if self.profiles is not None:
            return self._declared
        return () if open_shape(config) else (configured_profile(config),)

    def validate(self, repository: ModelRepository, platform: ServingPlatform) -> None:
        """Reject a plan that cannot be built for the repository and the platform.

        The rules CT702 and CT705 check whether an existing ONNX file fits its configuration and its profiles.

        Raises:
            ConfigurationError: the model is missing, does not have the TensorRT backend, or has an open shape without
                `profiles`; the release's TensorRT does not support an option; the GPU does not support the precision;
                the ONNX file cannot be read, or has an operator for which ONNX Runtime cannot compute outputs to
                compare with; a range of `parity` is not for an integer input, or the `data` of `parity` does not fit
                the model; or a plugin library is missing, or is no library of Linux on x86-64.
        """
        model = model_of(repository, self.model, str(self))
        config = check_model(str(self), model)
        network = read_network(str(self), repository, self.network)
        if self.profiles is None:
            check_shapes_are_known(str(self), config)
        else:
            check_profiles(self._declared, config, str(self), network)
        if self.parity is not None:
            check_ranges(str(self), model, config, self.parity.ranges)
            check_comparable(str(self), repository, self.network)
            if self._data is not None:
                check_data(str(self), repository, self._data, config, self._shape_profiles(config))
        release = required_release(str(self), platform)
        check_plugins(str(self), self.plugin_files, repository, release)
        several = ("--profile",) if len(self._declared) > 1 else ()
        # Before the options: a precision that is none any more has a sentence of its own.
        check_precision(str(self), self.precision, platform, release, _types(repository, self.network))
        check_options(str(self), (*self._options(release, ()), *several), release)
        check_gpu(str(self), platform, self.hardware_compatibility, self.workspace_mib)

    def step(self, repository: ModelRepository, platform: ServingPlatform) -> dict[str, object]:
        """The input of the build program; the module's docstring describes it.

        Raises:
            ConfigurationError: `validate` would raise it.
        """
        self.validate(repository, platform)
        model = model_of(repository, self.model, str(self))
        config = model.config or ModelConfig()
        profiles = self._shape_profiles(config)
        release = required_release(str(self), platform)
        plain, shaped = self._options(release, ()), self._options(release, profiles)
        network = read_network(str(self), repository, self.network)
        is_static = network is not None and _is_static(network, config)
        may_be_static = network is None and all(
            shapes.minimum == shapes.maximum for profile in profiles for shapes in profile.values()
        )
        return {
            "recipe": "tensorrt_plan",
            "name": f"the TensorRT plan of {model.name}",
            "onnx": self.network,
            "plan": self.produces[0],
            "flags": list(plain if is_static else shaped),
            "flags_if_static": list(plain) if may_be_static else None,
            "plugins": list(self.plugin_files),
            "tensorrt_major": major_version(release),
            "profiles": profile_documents(profiles),
            "inputs": [_tensor(tensor, config.max_batch_size) for tensor in config.input],
            "outputs": [_tensor(tensor, config.max_batch_size) for tensor in config.output],
            "parity": None if self.parity is None else parity_document(self.parity, self.precision, self._data),
        }

    def _options(self, release: str, profiles: Sequence[Profile]) -> tuple[str, ...]:
        """Without files, and without shapes if there are no profiles."""
        major = major_version(release)
        # 8.6 knows both options, older ones only the first.
        options = ["--buildOnly" if major < 10 else "--skipInference", *precision_flags(self.precision, major)]
        if self.workspace_mib is not None:
            options.append(f"--memPoolSize=workspace:{self.workspace_mib}")
        if self.optimization_level is not None:
            options.append(f"--builderOptimizationLevel={self.optimization_level}")
        if self.hardware_compatibility is not None:
            options.append(f"--hardwareCompatibilityLevel={_TRTEXEC_NAMES[self.hardware_compatibility]}")
        return (*options, *shape_flags(profiles))

    def estimated_minutes(self, repository: ModelRepository) -> float:
        """A rough estimate of the build's duration in minutes."""
        size = network_size(repository, self.network)
        megabytes = _UNKNOWN_NETWORK_MB if size is None else size / 1e6
        return _MINUTES_PER_PLAN + _MINUTES_PER_100_MB * megabytes / 100 * max(1, len(self._declared))


def _types(repository: ModelRepository, path: str) -> NetworkTypes | None:
    """None if the network's file cannot be read."""
    file = file_at(repository, path)
    read = None if file is None else network_types(file.source)
    return read if isinstance(read, NetworkTypes) else None


def _is_static(network: OnnxFile, config: ModelConfig) -> bool:
    """Trtexec then rejects shapes: "Static model does not take explicit shapes" (sampleEngines.cpp)."""
    if any(tensor.is_shape_tensor for tensor in config.input):
        return False
    shapes = [tensor.shape for tensor in network.inputs]
    return all(shape is not None and all(isinstance(size, int) and size > 0 for size in shape) for shape in shapes)


def _tensor(tensor: ModelInput | ModelOutput, max_batch_size: int) -> dict[str, object]:
    dims = list(tensor.reshape.shape if tensor.HasField("reshape") else tensor.dims)
    batch = [-1] if max_batch_size > 0 and not tensor.is_shape_tensor else []
    return {"name": tensor.name, "data_type": enum_name(tensor, "data_type"), "dims": batch + dims}
