"""The inputs that a model takes: names, data types and dimensions from its `config.pbtxt`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from cdk_triton._wording import did_you_mean, listed
from cdk_triton.errors import ConfigurationError

if TYPE_CHECKING:
    from cdk_triton.client.contract import Contract
    from cdk_triton.triton import ModelConfig

__all__ = ["InputSpec", "Signature", "of_config", "of_repository"]


@dataclass(frozen=True)
class InputSpec:
    """One input.

    Attributes:
        name: the input's name.
        datatype: the data type as requests name it, such as `FP32`.
        dims: the dimensions in a request, including the batch dimension; -1 stands for any size. None where they are
            not known.
        is_optional: whether a request may omit the input.
    """

    name: str
    datatype: str
    dims: tuple[int, ...] | None
    is_optional: bool = False


@dataclass(frozen=True)
class Signature:
    """The inputs of a model.

    Attributes:
        source: the place where it was found, for messages.
        inputs: the inputs.
        max_batch_size: the largest batch; 0 where the model does not batch.
        contract: what else the configuration of a model on an endpoint says; None for another configuration.
    """

    source: str
    inputs: tuple[InputSpec, ...]
    max_batch_size: int
    contract: Contract | None = None

    def find(self, name: str) -> InputSpec:
        """The input of a name.

        Raises:
            ConfigurationError: the model has no input of this name.
        """
        for each in self.inputs:
            if each.name == name:
                return each
        names = [each.name for each in self.inputs]
        raise ConfigurationError(
            f"the model has no input '{name}'{did_you_mean(name, names)}: {self.source} has {listed(names)}"
        )


def of_config(config: ModelConfig, source: str) -> Signature:
    """The signature that a configuration has.

    Raises:
        ConfigurationError: the configuration does not name an input; Triton completes such a configuration from the
            model's file.
    """
    from cdk_triton.triton.schema import DataType

    batches = config.max_batch_size > 0
    inputs = []
    for each in config.input:
        datatype = DataType.Name(each.data_type).removeprefix("TYPE_").replace("STRING", "BYTES")
        dims = ((-1,) if batches else ()) + tuple(each.dims)
        inputs.append(InputSpec(each.name, datatype, dims, bool(each.optional)))
    if not inputs:
        raise ConfigurationError(
            f"{source} names no input, because Triton completes it when it loads the model: write the type yourself, "
            "as in --input NAME:FP32=@x.npy"
        )
    return Signature(source, tuple(inputs), config.max_batch_size)


def of_repository(directory: Path) -> Signature:
    """The signature of the model of a repository that callers invoke.

    Raises:
        RepositoryError: the directory is not a repository, or its configuration cannot be read.
        ConfigurationError: the repository leaves open which model that is, or the configuration names no input.
    """
    from cdk_triton.client.contract import Contract, called_models
    from cdk_triton.triton import ModelRepository

    repository = ModelRepository.from_directory(directory)
    model = repository.entry_model("single") or repository.entry_model("multi")
    if model is None:
        names = listed([each.name for each in repository.models])
        raise ConfigurationError(
            f"{directory} has several models and none that callers invoke ({names}): give the directory of one "
            "model, or a repository with one ensemble"
        )
    source = str(directory / model.config_path)
    if model.config_error is not None:
        raise model.config_error
    if model.config is None:
        raise ConfigurationError(f"{source} is missing: write the type yourself, as in --input NAME:FP32=@x.npy")
    called = [each.config for each in called_models(repository, model) if each.config is not None]
    return replace(of_config(model.config, source), contract=Contract.of_config(model.name, model.config, called))
