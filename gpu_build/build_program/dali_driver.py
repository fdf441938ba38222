"""Serialises a DALI pipeline; runs in the Python that has DALI, with nothing else of this package.

The first argument is a JSON file with the question, the second one the JSON file for the answer.
"""

from __future__ import annotations

import inspect
import json
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

_MODULE = "autoserialize_mod"  # as Triton's DALI backend calls it (dali_backend: src/model_provider/model_provider.h)
_MARK = """

from nvidia.dali.plugin.triton import autoserialize as _cdk_triton_autoserialize

_cdk_triton_autoserialize({name})
"""


class PipelineError(Exception):
    """The fault that the user has to fix, as a sentence."""


class UserCodeError(Exception):
    """The user's code raised the cause; its text is what was run."""


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """Serialise the one pipeline of a file, and load it if requested: the answer then has its `signature`.

    Args:
        question: `source`, relative to the working directory; `marked`, where to write what Triton serialises (None:
            the source is that already, or `model.dali` is served); `by_name`, whether the pipeline needs no mark;
            `serialized`, where the pipeline goes; `load` and `max_batch_size`.
    """
    try:
        _serialize(question)
    except PipelineError as error:
        return {"error": str(error)}
    except UserCodeError as error:
        return {"raised": _raised(error, question)}
    if question["load"]:
        return {"signature": _load(question["serialized"], question["max_batch_size"])}
    return {}


def _raised(error: UserCodeError, question: dict[str, Any]) -> dict[str, Any]:
    cause = error.__cause__ or error
    traceback.print_exception(type(cause), cause, cause.__traceback__)  # all of it, for the job's log
    frames = []
    for file, *rest in traceback.extract_tb(cause.__traceback__):
        # The marked file has the lines of the user's, and more after them.
        frames.append([question["source"] if file == question["marked"] else file, *rest])
    return {"what": str(error), "type": type(cause).__name__, "text": str(cause), "frames": frames}


def _serialize(question: dict[str, Any]) -> None:
    source = question["source"]
    name, is_marked = _pipeline_in(source)
    if question["marked"] is not None:
        _write_marked(Path(source), Path(question["marked"]), None if is_marked else name)
        source = question["marked"]
    module = _imported(source)
    if question["by_name"]:
        try:
            pipeline = getattr(module, name)()
        except BaseException as error:  # of the user's code, which may also exit
            raise UserCodeError(f"{question['source']}:{name}") from error
        pipeline.serialize(filename=question["serialized"])
    else:
        from nvidia.dali._utils.autoserialize import invoke_autoserialize

        try:
            invoke_autoserialize(module, question["serialized"])
        except BaseException as error:  # of the user's code, which may also exit
            raise UserCodeError(f"{question['source']}:{name}") from error


def _pipeline_in(source: str) -> tuple[str, bool]:
    """The name of the pipeline to serve, and whether it has `@autoserialize`."""
    functions = [each for _, each in inspect.getmembers(_imported(source), inspect.isfunction)]
    marked = [each.__name__ for each in functions if getattr(each, "_is_autoserialize", False)]
    defined = [
        each.__name__ for each in functions if getattr(each, "_is_pipeline_def", False) and each.__module__ == _MODULE
    ]
    if len(marked) > 1:
        raise PipelineError(
            f"{source} has {len(marked)} functions with @autoserialize ({', '.join(marked)}), but Triton serialises "
            "exactly one: keep the decorator on one of them only"
        )
    if not marked and len(defined) != 1:
        names = f" ({', '.join(defined)})" if defined else ""
        raise PipelineError(
            f"{source} has {len(defined)} functions with @pipeline_def{names}, and none with @autoserialize: define "
            "exactly one function with @pipeline_def, or mark the function to serve with @autoserialize of "
            "nvidia.dali.plugin.triton"
        )
    return (marked or defined)[0], bool(marked)


def _write_marked(source: Path, target: Path, name: str | None) -> None:
    text = source.read_bytes()
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(text if name is None else text + _MARK.format(name=name).encode("utf-8"))


def _imported(source: str) -> ModuleType:
    """Import the file under its path in the repository.

    DALI writes the path of the code that made an operator into the serialised pipeline (`_origin_stack_filename`), so
    the path must not depend on this machine.
    """
    module = ModuleType(_MODULE)
    module.__file__ = str(Path(source).resolve())
    sys.modules[_MODULE] = module
    try:
        code = compile(Path(source).read_bytes(), source, "exec")
        exec(code, vars(module))  # noqa: S102 - the user's own pipeline
    except BaseException as error:  # of the user's code, which may also exit
        raise UserCodeError(source) from error
    return module


def _load(serialized: str, max_batch_size: int) -> dict[str, Any] | None:
    """As DALI's backend does it when it loads a model, on the GPU; what it then compares with `config.pbtxt`."""
    from dali_signature import signature_of  # type: ignore[import-not-found]  # dali.py writes it beside this file
    from nvidia import dali
    from nvidia.dali.pipeline import Pipeline

    batch_size = {"batch_size": max_batch_size} if max_batch_size else {}
    Pipeline.deserialize(filename=serialized, num_threads=1, device_id=0, **batch_size)
    if hasattr(Pipeline, "stand_in_signature"):
        return dict(Pipeline.stand_in_signature(filename=serialized))
    package, content = Path(dali.__file__).parent, Path(serialized).read_bytes()
    found = signature_of(package, content, max_batch_size, on_gpu=True)
    return None if found is None else found._asdict()


if __name__ == "__main__":
    _asked = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    Path(sys.argv[2]).write_text(json.dumps(answer(_asked)), encoding="utf-8")
