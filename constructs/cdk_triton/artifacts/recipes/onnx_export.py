"""`OnnxExport`: a user's Python function writes the network that is served or built into a TensorRT plan."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final, Literal

from cdk_triton._arguments import require_type, several
from cdk_triton._wording import quoted
from cdk_triton.artifacts.recipes.requirements_lock import lock_command, pinned_packages
from cdk_triton.artifacts.recipes.sources import parsed_python, required_text
from cdk_triton.artifacts.recipes.values import literal, model_of, path_in_model
from cdk_triton.errors import ConfigurationError
from cdk_triton.triton.schema import DataType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cdk_triton.artifacts.recipes.s3_file import S3File
    from cdk_triton.sagemaker import ServingPlatform
    from cdk_triton.triton import Model, ModelRepository

__all__ = ["OnnxExport"]

_TEXTS: Final = {
    name: several(
        lambda value: isinstance(value, str) and value != "",
        f"use a list of texts, none of them empty, such as [{example!r}]",
    )
    for name, example in (("outputs", "logits"), ("sources", "weights.safetensors"))
}


@dataclass(frozen=True)
class OnnxExport:
    """Runs your own Python function, which writes an ONNX file.

    The build calls the function with the path to write to (a `str`). The function runs in its own process, in a Python
    of the container's version, with only the packages of `requirements`. The environment variables of the process
    contain neither credentials nor tokens, but the process is not a sandbox: code that looks for secrets elsewhere may
    find them. The function finds the repository's files relative to its own file (`Path(__file__).parent`). `sources`
    names the files that only the export reads. The archive omits these files, the function's own file and the
    requirements.

    Afterwards, the build reads the ONNX file with the package `onnx` of `requirements`, compares the names of the
    network's outputs with `outputs`, changes integer inputs if `integer_inputs` is set, and checks the network. Weights
    in separate files are moved into the ONNX file, which holds at most 2 GiB.

    For example, `OnnxExport("bert", entry="export.py:export", onnx="bert.onnx", requirements="requirements.txt")`
    writes the file that `TensorRTPlan("bert", onnx="bert.onnx")` reads.

    Attributes:
        model: the directory of the model in the repository.
        entry: the function, as `<file relative to the model's directory>:<function>`.
        onnx: the file to write, relative to the model's directory. ONNX Runtime serves `1/model.onnx`.
        requirements: the requirements file with pinned packages and their hashes, relative to the model's directory. It
            must contain `onnx`. The build installs wheels only.
        outputs: the names of all outputs. None: the outputs of `config.pbtxt`.
        integer_inputs: "int32" changes every INT64 input to INT32, which the network then casts back. None: no change.
        sources: other files that only the export reads, relative to the model's directory.

    Raises:
        ConfigurationError: a path leaves the model's directory, or a value has the wrong type; `entry` does not name a
            file and a function; `outputs` is empty or contains a name twice; or the export reads the file that `onnx`
            names.
    """

    model: str
    entry: str
    onnx: str
    requirements: str
    outputs: Sequence[str] | None = None
    integer_inputs: Literal["int32"] | None = None
    sources: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Reject values that no repository could fix, and keep lists from changing."""
        literal(self.entry, f"entry of {self}")
        file, separator, function = self.entry.rpartition(":")
        if not separator or not function.isidentifier() or not file.endswith(".py"):
            raise ConfigurationError(
                f"entry of {self} is {quoted(self.entry)} but must name a file and a function in it, such as "
                "'export.py:export'"
            )
        if self.integer_inputs not in (None, "int32"):
            raise ConfigurationError(f"integer_inputs of {self} is {self.integer_inputs!r} but must be 'int32' or None")
        for name in ("outputs", "sources"):
            values = getattr(self, name)
            if name == "outputs" and values is None:
                continue
            require_type(f"{name} of {self}", values, _TEXTS[name])
            object.__setattr__(self, name, tuple(values))
        if self.outputs is not None and (not self.outputs or len(set(self.outputs)) < len(self.outputs)):
            raise ConfigurationError(
                f"outputs of {self} is {list(self.outputs)!r} but must name one output or more, each once"
            )
        if self._target in self.consumes:
            raise ConfigurationError(
                f"{self} would write {self._target}, which this recipe reads: give the argument onnx another path"
            )

    def __str__(self) -> str:
        return f"OnnxExport({self.model!r})"

    @property
    def _function_name(self) -> str:
        return self.entry.rpartition(":")[2]

    @property
    def _source(self) -> str:
        """The file of the function, relative to the repository."""
        return path_in_model(self.model, self.entry.rpartition(":")[0], f"entry of {self}")

    @property
    def _target(self) -> str:
        """The file that it writes, relative to the repository."""
        return path_in_model(self.model, self.onnx, f"onnx of {self}")

    @property
    def produces(self) -> tuple[str, ...]:
        """See `BuildRecipe.produces`."""
        return (self._target,)

    @property
    def consumes(self) -> tuple[str, ...]:
        """See `BuildRecipe.consumes`."""
        others = (path_in_model(self.model, path, f"sources of {self}") for path in self.sources)
        return tuple(dict.fromkeys((self._source, self._requirements, *others)))

    @property
    def s3_files(self) -> Mapping[str, S3File]:
        """See `BuildRecipe.s3_files`."""
        return {}

    def parameters(self) -> dict[str, object]:
        """See `BuildRecipe.parameters`."""
        return {
            "recipe": "onnx_export",
            "source": self._source,
            "function": self._function_name,
            "onnx": self._target,
            "requirements": self._requirements,
            "outputs": None if self.outputs is None else list(self.outputs),
            "integer_inputs": self.integer_inputs,
            "reads": sorted(self.consumes),
        }

    def validate(self, repository: ModelRepository, platform: ServingPlatform) -> None:
        """See `BuildRecipe.validate`."""
        model = model_of(repository, self.model, str(self))
        self._check_function(required_text(repository, self._source, f"the file of {self}"))
        self._check_requirements(required_text(repository, self._requirements, f"the requirements file of {self}"))
        self._output_names(model)
        if self.integer_inputs == "int32" and model.config is not None:
            for given in model.config.input:
                if given.data_type == DataType.Value("TYPE_INT64"):
                    raise ConfigurationError(
                        f"{self} changes every INT64 input to INT32, but {model.config_path} has the input "
                        f"{given.name!r} of TYPE_INT64: write TYPE_INT32 there, or remove integer_inputs"
                    )

    def step(self, repository: ModelRepository, platform: ServingPlatform) -> dict[str, object]:
        """See `BuildRecipe.step`."""
        return {
            "recipe": "onnx_export",
            "name": f"the ONNX export of {self.model}",
            "source": self._source,
            "function": self._function_name,
            "target": self._target,
            "requirements": self._requirements,
            "outputs": list(self._output_names(model_of(repository, self.model, str(self)))),
            "integer_inputs": self.integer_inputs,
        }

    def estimated_minutes(self, repository: ModelRepository) -> float:
        """See `BuildRecipe.estimated_minutes`: the time to install a framework and to trace a network."""
        return 5.0

    @property
    def _requirements(self) -> str:
        return path_in_model(self.model, self.requirements, f"requirements of {self}")

    def _output_names(self, model: Model) -> tuple[str, ...]:
        if self.outputs is not None:
            return tuple(self.outputs)
        names = () if model.config is None else tuple(output.name for output in model.config.output)
        if not names:
            raise ConfigurationError(
                f"neither {self} nor {model.config_path} names the outputs, but the build needs their names to check "
                "the export: write outputs=['…']"
            )
        return names

    def _check_function(self, text: str) -> None:
        body = parsed_python(text, self._source).body
        functions = [each.name for each in body if isinstance(each, ast.FunctionDef)]
        # A name can also come from an import, an assignment or a condition; the build finds out.
        if self._function_name not in functions and self._function_name not in text:
            known = ", ".join(map(repr, functions)) or "none"
            raise ConfigurationError(
                f"{self._source} has no function {self._function_name!r} (it has {known}): "
                f"correct the argument entry of {self}"
            )

    def _check_requirements(self, text: str) -> None:
        path = PurePosixPath(self._requirements)
        command = lock_command(self._requirements)
        packages = pinned_packages(text, self._requirements, str(self), command)
        if not any(package.name == "onnx" for package in packages):
            raise ConfigurationError(
                f"the requirements file {path} of {self} has no onnx, with which the build checks the export: add onnx "
                f"to {path.with_suffix('.in').name} and run {command}"
            )
