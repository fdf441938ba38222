"""The PyTorch models of a repository: which file each has, and which argument of `forward` gets which input."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cdk_triton.checks.context import CheckContext, per_check
from cdk_triton.checks.derived.backend_files import BackendFile, backend_files, is_pointer
from cdk_triton.checks.derived.completion import known_backend
from cdk_triton.checks.derived.configured import ConfiguredModel, completed_pair, configured
from cdk_triton.checks.registry import Problem, rules_about, would_not_load
from cdk_triton.pytorch_models.naming import Naming, index_in, naming_of
from cdk_triton.pytorch_models.reader.file import TorchFile, torch_file
from cdk_triton.pytorch_models.reader.signature import Argument, Forward
from cdk_triton.triton.model import Model
from cdk_triton.triton.repository import RepositoryFile
from cdk_triton.triton.schema import ModelConfig, enum_name
from cdk_triton.triton.unreadable import Unreadable

if TYPE_CHECKING:
    from cdk_triton.triton.schema import ModelSequenceBatching

__all__ = [
    "ScriptedModel",
    "compiled_rule",
    "is_compiled",
    "is_passed",
    "is_scripted",
    "scripted_models",
    "scripted_rule",
    "torch_contents",
    "torchscript_rule",
]

_CONTROLS = ("CONTROL_SEQUENCE_START", "CONTROL_SEQUENCE_END", "CONTROL_SEQUENCE_READY", "CONTROL_SEQUENCE_CORRID")


def is_scripted(context: CheckContext, model: Model) -> bool:
    """Whether the PyTorch backend runs the model as TorchScript."""
    return known_backend(context, model) == "pytorch"


def is_compiled(context: CheckContext, model: Model) -> bool:
    """Whether the PyTorch backend runs the model as a compiled PyTorch 2 archive (`platform: "torch_aoti"`)."""
    own_library = any(file.path.name == "libtriton_pytorch.so" for file in model.files)
    is_elsewhere = model.config is not None and model.config.runtime
    return completed_pair(context, model) == ("torch_aoti", "pytorch") and not own_library and not is_elsewhere


@per_check
def _scripted(context: CheckContext) -> Iterator[ConfiguredModel]:
    return (each for each in configured(context) if is_scripted(context, each.model))


torchscript_rule = rules_about(_scripted)
"""Register a rule about the configuration of each TorchScript model; the parameters are those of `rule`."""


@per_check
def _compiled(context: CheckContext) -> Iterator[ConfiguredModel]:
    return (each for each in configured(context) if is_compiled(context, each.model))


compiled_rule = rules_about(_compiled)
"""Register a rule about the configuration of each compiled model; the parameters are those of `rule`."""


def torch_contents(each: BackendFile) -> TorchFile | Unreadable | None:
    """What the file of a PyTorch model is; None for another backend, a missing file, and a pointer of Git LFS."""
    if each.backend != "pytorch" or each.file is None or each.config.runtime or is_pointer(each.context, each.file):
        return None
    return each.context.contents(torch_file, each.file)


@dataclass(frozen=True)
class ScriptedModel:
    """A TorchScript file whose `forward` is known, and the configuration that it has to agree with.

    Attributes:
        owner: the model, with its configuration.
        file: the file in the repository.
        forward: the method that the backend calls.
    """

    owner: ConfiguredModel
    file: RepositoryFile
    forward: Forward

    @property
    def name(self) -> str:
        """The model's name."""
        return self.owner.name

    @property
    def config(self) -> ModelConfig:
        """The model's configuration."""
        return self.owner.config

    @property
    def takes_dictionary(self) -> bool:
        """Whether the only argument is a dictionary, whose keys are the names of the inputs."""
        return len(self.forward.arguments) == 1 and self.forward.arguments[0].type.name == "Dict"

    @property
    def rejected(self) -> Argument | None:
        """The first argument for whose type the backend does not load the model (CT842)."""
        if self.takes_dictionary:
            return None
        return next((each for each in self.forward.arguments if each.type.name not in ("Tensor", "List")), None)

    @property
    def naming(self) -> Naming:
        """How the backend finds the argument of each input."""
        return naming_of([each.name for each in self.config.input], [each.name for each in self.forward.arguments])

    @property
    def places(self) -> tuple[int, ...]:
        """For each input of the configuration, the index of its argument, which may be one that does not exist."""
        names, naming = [each.name for each in self.config.input], self.naming
        if naming is Naming.ORDER:
            return tuple(range(len(names)))
        arguments = [each.name for each in self.forward.arguments]
        return tuple(arguments.index(name) if naming is Naming.ARGUMENT else index_in(name) or 0 for name in names)

    def problem(self, message: str, fix: str) -> Problem:
        """A problem of the file."""
        return Problem(self.file.path, message, fix)

    def unloadable(self, found: str, words: str, fix: str, *, joint: str = ", so ") -> Problem:
        """A problem of the file for which the server does not load the model; `words` are the server's."""
        return self.problem(would_not_load(self.owner.model, found, words, joint), fix)


@per_check
def scripted_models(context: CheckContext) -> Iterator[ScriptedModel]:
    """The TorchScript files that the server would load and whose `forward` is known."""
    for each in backend_files(context):
        read = torch_contents(each)
        if not isinstance(read, TorchFile) or read.forward is None or each.file is None:
            continue
        if is_scripted(context, each.model):
            yield ScriptedModel(each.owner, each.file, read.forward)


scripted_rule = rules_about(scripted_models)
"""Register a rule about each TorchScript file with its configuration; the parameters are those of `rule`."""


def is_passed(control: ModelSequenceBatching.ControlInput) -> bool:
    """Whether the backend passes a control of sequences to the model."""
    return any(enum_name(one, "kind") in _CONTROLS for one in control.control)
