"""Serialises a DALI pipeline; runs in the Python that has DALI, with nothing else of this package.

The first argument is a JSON file with the question, the second one the JSON file for the answer.
"""

from __future__ import annotations

import inspect
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Callable

_MODULE = "autoserialize_mod"  # as Triton's DALI backend calls it (dali_backend: src/model_provider/model_provider.h)


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """What was asked for: `find`, `serialize` or `load`."""
    actions: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
        "find": find,
        "serialize": serialize,
        "load": load,
    }
    return actions[question["action"]](question)


def find(question: dict[str, Any]) -> dict[str, Any]:
    """The pipeline definitions of a file, and those that are marked with `@autoserialize`."""
    import nvidia.dali

    functions = [each for _, each in inspect.getmembers(_imported(question["source"]), inspect.isfunction)]
    return {
        "dali": getattr(nvidia.dali, "__version__", None),
        "pipelines": [each.__name__ for each in functions if _is_pipeline(each) and each.__module__ == _MODULE],
        "marked": [each.__name__ for each in functions if getattr(each, "_is_autoserialize", False)],
    }


def serialize(question: dict[str, Any]) -> dict[str, Any]:
    """Write the serialised pipeline; without a `function`, as the backend does it while it loads a model."""
    module = _imported(question["source"])
    if question["function"] is None:
        from nvidia.dali._utils.autoserialize import invoke_autoserialize

        invoke_autoserialize(module, question["target"])
    else:
        getattr(module, question["function"])().serialize(filename=question["target"])
    return {}


def load(question: dict[str, Any]) -> dict[str, Any]:
    """Make a pipeline of the serialised one, on the GPU, as the backend does it while it loads a model."""
    from nvidia.dali.pipeline import Pipeline

    batch_size = {"batch_size": question["max_batch_size"]} if question["max_batch_size"] else {}
    Pipeline.deserialize(filename=question["serialized"], num_threads=1, device_id=0, **batch_size)
    return {}


def _is_pipeline(function: object) -> bool:
    return bool(getattr(function, "_is_pipeline_def", False) or getattr(function, "is_pipeline_def", False))


def _imported(source: str) -> ModuleType:
    """The file as a module.

    DALI writes the path of the code that made an operator into the serialised pipeline (`_origin_stack_filename`), so
    the code gets its path in the repository, wherever that is on this machine.
    """
    module = ModuleType(_MODULE)
    module.__file__ = str(Path(source).resolve())
    sys.modules[_MODULE] = module
    code = compile(Path(source).read_bytes(), source, "exec")
    exec(code, vars(module))  # noqa: S102 - the user's own pipeline
    return module


if __name__ == "__main__":
    _asked = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    Path(sys.argv[2]).write_text(json.dumps(answer(_asked)), encoding="utf-8")
