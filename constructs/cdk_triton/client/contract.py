"""The inputs and outputs of a model, as its `config.pbtxt` has it: checked and completed before anything is sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cdk_triton._wording import did_you_mean, in_words, quoted
from cdk_triton.client.options import listed
from cdk_triton.client.tensors import as_numbers, datatype_of, no_tensor, numpy_type
from cdk_triton.errors import ConfigurationError, InvocationError

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt
    from tritonclient.http import InferRequestedOutput

    from cdk_triton.client.options import RequestOptions
    from cdk_triton.client.payload import InferenceResult
    from cdk_triton.triton import Model, ModelConfig, ModelRepository

__all__ = ["Contract", "TensorContract", "called_models"]

_MOST_OF_TYPE: Final = {
    "TYPE_UINT64": 2**64 - 1,
    "TYPE_INT64": 2**63 - 1,
    "TYPE_UINT32": 2**32 - 1,
    "TYPE_INT32": 2**31 - 1,
}
"""The greatest identifier of a sequence in each type; the server cuts off what does not fit. The others are texts."""


@dataclass(frozen=True)
class TensorContract:
    """One input or output of a model.

    Attributes:
        name: the name of the tensor.
        datatype: Triton's data type, such as FP32 or BYTES.
        dims: the dimensions without the batch dimension; -1 stands for any size.
        is_optional: whether a request may omit the tensor.
    """

    name: str
    datatype: str
    dims: tuple[int, ...]
    is_optional: bool = False

    def array(self, value: Any, max_batch_size: int) -> npt.NDArray[Any]:
        """Return a value as an array of the tensor's type and shape.

        Args:
            value: an array of the tensor's type, or anything that numpy converts to one without loss. Dimensions of 1
                at the end may be omitted, and so may the batch dimension of a single row.
            max_batch_size: the model's `max_batch_size`; 0 if its tensors have no batch dimension.

        Raises:
            ConfigurationError: the type or the shape does not fit.
        """
        array = self.typed(value)
        found = self.completed(array.shape, max_batch_size)
        if found is None:
            batch = f" after a batch dimension from 1 to {max_batch_size}" if max_batch_size else ""
            raise ConfigurationError(
                f"input '{self.name}' has the shape {list(array.shape)}, but config.pbtxt has dims: "
                f"{list(self.dims)}{batch}: give an array with the shape in config.pbtxt"
            )
        return array.reshape(found)

    def completed(self, shape: tuple[int, ...], max_batch_size: int) -> tuple[int, ...] | None:
        """Return a shape with the dimensions that may be omitted; None: it does not fit."""
        ones = len(self.dims) - len(_without_ones_at_the_end(self.dims))
        for omitted in range(ones + 1):
            full = shape + (1,) * omitted
            if not max_batch_size:
                if self._matches(full):
                    return full
            elif full and 1 <= full[0] <= max_batch_size and self._matches(full[1:]):
                return full
            elif self._matches(full):
                return (1, *full)
        return None

    def _matches(self, shape: tuple[int, ...]) -> bool:
        return len(shape) == len(self.dims) and all(
            dim in (-1, size) for dim, size in zip(self.dims, shape, strict=True)
        )

    def typed(self, value: Any) -> npt.NDArray[Any]:
        """Return a value as an array of the tensor's type.

        Raises:
            ConfigurationError: the type does not fit.
        """
        import numpy as np

        if isinstance(value, np.ndarray):
            if (given := datatype_of(self.name, value)) != self.datatype:
                raise ConfigurationError(
                    f"input '{self.name}' is {given} ({value.dtype}), but config.pbtxt has {self.datatype}: "
                    f"convert the array with {self._conversion}"
                )
            return value
        try:
            if self.datatype == "BYTES":
                return np.array(value, dtype=object)
            array = as_numbers(value)
        except OverflowError as error:
            raise self._misfit(str(error), f"give values of {self.datatype}") from error
        except ValueError as error:
            raise no_tensor(self.name, value) from error
        return self._without_loss(array)

    def _misfit(self, reason: str, fix: str) -> ConfigurationError:
        return ConfigurationError(f"input '{self.name}' cannot become an array of {self.datatype}: {reason}; {fix}")

    def _without_loss(self, given: npt.NDArray[Any]) -> npt.NDArray[Any]:
        import numpy as np

        if given.dtype.kind not in "biuf":
            raise self._misfit("it has values that are not numbers", "give numbers")
        with np.errstate(all="ignore"):
            array: npt.NDArray[Any] = given.astype(numpy_type(self.datatype))
            if array.dtype.kind in "biu":
                is_same = bool(np.all(array == given))
            elif given.dtype.kind in "iu":
                # Python compares an integer with a float exactly; numpy rounds the integer first.
                is_same = bool(np.all(array.astype(np.float64).astype(object) == given.astype(object)))
            else:
                is_same = bool(np.all(np.isfinite(array.astype(np.float64)) | ~np.isfinite(given)))
        if not is_same:
            raise self._misfit(f"it has values that {self.datatype} cannot hold", f"give values of {self.datatype}")
        return array

    @property
    def _conversion(self) -> str:

        return f"array.astype('{numpy_type(self.datatype)}')"


@dataclass(frozen=True)
class Contract:
    """Inputs and outputs of the model that callers of a repository invoke.

    Attributes:
        model: the model's name.
        inputs: the inputs by name.
        outputs: the outputs by name.
        max_batch_size: how many rows a request may have; 0 if the model does not batch.
        takes_queue_timeout: whether a request can shorten its time in the queue of the model, or of a step.
        sequence_id_types: the types in which the model and its steps get the identifier of a sequence.
        batcher_inputs: the inputs that the model's sequence batcher adds to each request: controls and states.
    """

    model: str
    inputs: Mapping[str, TensorContract]
    outputs: Mapping[str, TensorContract]
    max_batch_size: int
    takes_queue_timeout: bool = False
    sequence_id_types: tuple[str, ...] = ()
    batcher_inputs: frozenset[str] = frozenset()

    @classmethod
    def of(cls, repository: ModelRepository | str | Path) -> Contract:
        """Read the configuration of a repository's entry model.

        Raises:
            ConfigurationError: the repository does not have one entry model, or the configuration of that model does
                not have inputs and outputs.
            ModelConfigError: the configuration cannot be read.
            RepositoryError: the directory cannot be read.
        """
        from cdk_triton.triton.repository import repository_of  # takes a while: for clients that check requests

        repository = repository_of(repository)
        model = repository.entry_model()
        if model is None:
            raise ConfigurationError(
                f"repository '{repository.name}' does not have exactly one model that callers invoke: give a "
                "repository with one model or one outermost ensemble"
            )
        if model.config_error is not None:
            raise model.config_error
        config = model.config
        if config is None or not config.input or not config.output:
            raise ConfigurationError(
                f"{model.config_path} of repository '{repository.name}' lacks inputs or outputs: write both, or use "
                "the client without for_repository"
            )
        called = called_models(repository, model)
        return cls.of_config(model.name, config, [each.config for each in called if each.config is not None])

    @classmethod
    def of_config(cls, model: str, config: ModelConfig, called: Sequence[ModelConfig]) -> Contract:
        """Read a configuration.

        Args:
            model: the model's name.
            config: its configuration.
            called: the configurations whose schedulers see a request: its own, and those of the steps of an ensemble.
        """
        return cls(
            model,
            _tensors(config.input),
            _tensors(config.output),
            config.max_batch_size,
            takes_queue_timeout=any(map(_takes_queue_timeout, called)),
            sequence_id_types=tuple(kind for each in called for kind in _sequence_id_types(each)),
            batcher_inputs=frozenset(
                (
                    *(control.name for control in config.sequence_batching.control_input),
                    *(state.input_name for state in config.sequence_batching.state),
                )
            ),
        )

    def complete(self, inputs: Mapping[str, Any]) -> dict[str, npt.NDArray[Any]]:
        """Return the inputs of a request as arrays of the right types and shapes.

        Raises:
            ConfigurationError: a name, a type or a shape does not fit, or an input is missing.
        """
        if not isinstance(inputs, Mapping):
            raise ConfigurationError(
                f"the inputs are of type {type(inputs).__name__}: give a mapping from tensor name to value"
            )
        for name in inputs:
            if name in self.batcher_inputs:
                raise ConfigurationError(
                    f"the sequence batcher of model '{self.model}' adds the input {name!r} itself: omit it, and call "
                    "the model in a sequence, with client.sequence(…) or `cdk-triton invoke --sequence`"
                )
            self._require("input", name, self.inputs)
        missing = [each.name for each in self.inputs.values() if not each.is_optional and each.name not in inputs]
        if missing:
            raise ConfigurationError(
                f"model '{self.model}' needs the input '{missing[0]}', but the request does not have this input: add it"
            )
        arrays = {name: self.inputs[name].array(value, self.max_batch_size) for name, value in inputs.items()}
        if self.max_batch_size and len({array.shape[0] for array in arrays.values()}) > 1:
            rows = ", ".join(f"'{name}' {array.shape[0]}" for name, array in arrays.items())
            raise ConfigurationError(
                f"the inputs have unequal numbers of rows ({rows}): give each input the same batch size"
            )
        return arrays

    def check_queue_timeout(self, options: RequestOptions) -> None:
        """Reject a time-out that has no effect.

        Raises:
            ConfigurationError: neither the model nor one of its steps looks at the time-out of a request.
        """
        if options.get("queue_timeout_seconds") is not None and not self.takes_queue_timeout:
            raise ConfigurationError(
                f"queue_timeout_seconds has no effect on model '{self.model}': omit it, or set allow_timeout_override "
                "and a default_timeout_microseconds in the queue policy of config.pbtxt"
            )

    def check_sequence_id(self, sequence_id: int | str) -> int | str:
        """Return the identifier of a sequence.

        Raises:
            ConfigurationError: the model gets it in another type. The server copies its bytes without a conversion, and
                beyond the end of the tensor before 25.01 (core, `SequenceBatch::SetControlTensors`).
        """
        for kind in self.sequence_id_types:
            most = _MOST_OF_TYPE.get(kind)
            if isinstance(sequence_id, str) if most is not None else not isinstance(sequence_id, str):
                raise self._wrong_id(sequence_id, kind, "a text" if most is None else "a number")
            if most is not None and isinstance(sequence_id, int) and sequence_id > most:
                raise self._wrong_id(sequence_id, kind, f"a number of at most {most:,}")
        return sequence_id

    def _wrong_id(self, sequence_id: int | str, kind: str, fix: str) -> ConfigurationError:
        return ConfigurationError(
            f"the identifier of the sequence is {quoted(sequence_id)}, but model '{self.model}' gets it as {kind}, the "
            f"data_type of its CONTROL_SEQUENCE_CORRID: give {fix}"
        )

    def known_outputs(
        self, outputs: Iterable[str | InferRequestedOutput] | None
    ) -> list[str | InferRequestedOutput] | None:
        """Return the wanted outputs as a list.

        Raises:
            ConfigurationError: the model has no output of that name.
        """
        wanted = listed(outputs)
        for output in wanted or ():
            self._require("output", output if isinstance(output, str) else output.name(), self.outputs)
        return wanted

    def check(self, result: InferenceResult) -> InferenceResult:
        """Return a result whose outputs have the types of the configuration.

        Raises:
            InvocationError: an output has a different type.
        """
        for output in result.datatypes:
            tensor = self.outputs.get(output)
            # An output that was asked for as classes is text, whatever its type.
            if tensor is not None and result.datatypes[output] not in (tensor.datatype, "BYTES"):
                raise InvocationError(
                    f"model '{self.model}' answered with '{output}' as {result.datatypes[output]}, but config.pbtxt "
                    f"has {tensor.datatype}: give the repository that the endpoint serves"
                )
        return result

    def _require(self, kind: str, name: str, known: Mapping[str, TensorContract]) -> None:
        if name not in known:
            raise ConfigurationError(
                f"model '{self.model}' does not have the {kind} {name!r}{did_you_mean(str(name), known)}: use "
                f"{in_words(map(repr, known))}"
            )


def called_models(repository: ModelRepository, model: Model) -> list[Model]:
    """A model and, if it is an ensemble, the models of its steps and of theirs."""
    called = [model]
    for each in called:  # grows while we walk
        steps = (repository.model(name) for name in each.graph.model_names)
        called += [step for step in steps if step is not None and step not in called]
    return called


def _takes_queue_timeout(config: ModelConfig) -> bool:
    """As `PolicyQueue::Enqueue` of core's `src/scheduler_utils.cc` looks at the time-out of a request."""
    batching = config.dynamic_batching
    policies = [batching.default_queue_policy, *batching.priority_queue_policy.values()]
    return any(each.allow_timeout_override and each.default_timeout_microseconds > 0 for each in policies)


def _sequence_id_types(config: ModelConfig) -> Iterator[str]:
    from cdk_triton.triton.schema import enum_name

    for given in config.sequence_batching.control_input:
        for control in given.control:
            if enum_name(control, "kind") == "CONTROL_SEQUENCE_CORRID":
                yield enum_name(control, "data_type")


def _tensors(declared: Iterable[Any]) -> dict[str, TensorContract]:
    from cdk_triton.triton.schema import enum_name

    found = {}
    for each in declared:
        datatype = enum_name(each, "data_type").removeprefix("TYPE_").replace("STRING", "BYTES")
        is_optional = bool(getattr(each, "optional", False))
        found[each.name] = TensorContract(each.name, datatype, tuple(each.dims), is_optional)
    return found


def _without_ones_at_the_end(dims: tuple[int, ...]) -> tuple[int, ...]:
    while dims and dims[-1] == 1:
        dims = dims[:-1]
    return dims
