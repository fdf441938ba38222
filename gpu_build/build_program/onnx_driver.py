"""Runs an export and corrects the file; runs in the Python of the export, with nothing else of this package.

The first argument is a JSON file with the question, the second one the JSON file for the answer.
"""

from __future__ import annotations

import json
import sys
import traceback
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Iterator

_INT32, _INT64 = 6, 7  # onnx.TensorProto.DataType
_MOST_BYTES = (1 << 31) - 1  # protobuf's largest message


class ExportError(Exception):
    """The fault that the user has to fix, as a sentence."""


class UserCodeError(Exception):
    """The user's code raised the cause; its text is what was run."""


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """The answer to `export` or `finish`; a fault of the user's is an `error`, their exception `raised`."""
    try:
        if question["action"] == "export":
            export(question)
        else:
            finish(question)
    except ExportError as error:
        return {"error": str(error)}
    except UserCodeError as error:
        return {"raised": _raised(error)}
    return {}


def _raised(error: UserCodeError) -> dict[str, Any]:
    cause = error.__cause__ or error
    traceback.print_exception(type(cause), cause, cause.__traceback__)  # all of it, for the job's log
    frames = traceback.extract_tb(cause.__traceback__)
    return {"what": str(error), "type": type(cause).__name__, "text": str(cause), "frames": list(map(list, frames))}


def export(question: dict[str, Any]) -> None:
    """Call the function with the path to write to."""
    source = Path(question["source"])
    sys.path.insert(0, str(source.parent))  # for files beside it
    spec = spec_from_file_location(source.stem, str(source))
    if spec is None or spec.loader is None:
        raise ExportError(f"{question['shown']} is not a Python file")
    module = module_from_spec(spec)
    sys.modules[source.stem] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:  # of the user's code, which may also exit
        raise UserCodeError(question["shown"]) from error
    function = getattr(module, question["function"], None)
    if not callable(function):
        raise ExportError(
            f"{question['shown']} has no function {question['function']!r}: correct the recipe's argument entry"
        )
    try:
        function(question["exported"])
    except BaseException as error:  # of the user's code, which may also exit
        raise UserCodeError(f"{question['shown']}:{question['function']}") from error
    if not Path(question["exported"]).is_file():
        raise ExportError(
            f"the function {question['function']!r} of {question['shown']} wrote no file to the path in its argument: "
            "write the network to that path"
        )


def finish(question: dict[str, Any]) -> None:
    """Compare the outputs, change the inputs, and write everything into one file."""
    import onnx

    exported = Path(question["exported"])
    try:
        model = onnx.load(str(exported), load_external_data=False)
    except Exception as error:  # whatever protobuf raises
        raise ExportError(f"the file that {question['shown']} wrote is not an ONNX file: {error}") from error
    _compare_outputs(model.graph, question["outputs"], question["shown"])
    if question["integer_inputs"] == "int32":
        _narrow_inputs(model.graph, onnx, question["shown"])
    size = sum(path.stat().st_size for path in (exported, *_weight_files(model, exported.parent)))
    if size > _MOST_BYTES:
        raise ExportError(
            f"{question['shown']} wrote {size / 2**30:.1f} GiB, but an ONNX file holds up to 2 GiB: export with "
            "half precision, or export the network in parts"
        )
    onnx.load_external_data_for_model(model, str(exported.parent))
    onnx.save(model, question["target"])
    onnx.checker.check_model(question["target"])


def _compare_outputs(graph: Any, declared: list[str], shown: str) -> None:
    """A server and a plan use these names. Exporters invent names (`1234`, `/Add_output_0`) if none is given."""
    found = [output.name for output in graph.output]
    missing = [name for name in declared if name not in found]
    unknown = [name for name in found if name not in declared]
    if missing or unknown:
        words = []
        if missing:
            words.append(f"{', '.join(map(repr, missing))} missing")
        if unknown:
            words.append(f"{', '.join(map(repr, unknown))} not declared")
        raise ExportError(
            f"{shown} exported the outputs {', '.join(map(repr, found))} ({'; '.join(words)}): name the outputs in "
            "the export (output_names of torch.onnx.export), or correct the recipe's argument outputs"
        )


def _narrow_inputs(graph: Any, onnx: Any, shown: str) -> None:
    """Make every INT64 input INT32, and cast it to INT64 at the beginning of the graph."""
    weights = {weight.name for weight in graph.initializer}
    inputs = [each for each in graph.input if each.name not in weights and each.type.tensor_type.elem_type == _INT64]
    taken = set(_names(graph))
    casts = []
    for each in inputs:
        if any(output.name == each.name for output in graph.output):
            raise ExportError(f"{shown} exported the input {each.name!r} as an output, too: return a copy of the input")
        wide = f"{each.name}_int64"
        while wide in taken:
            wide += "_"
        taken.add(wide)
        _rename_uses(graph, each.name, wide)
        each.type.tensor_type.elem_type = _INT32
        casts.append(onnx.helper.make_node("Cast", [each.name], [wide], name=f"{wide}_cast", to=_INT64))
    for node in reversed(casts):
        graph.node.insert(0, node)


def _rename_uses(graph: Any, old: str, new: str) -> None:
    """Also in graphs inside nodes, unless they define the name themselves."""
    for node in graph.node:
        for index, name in enumerate(node.input):
            if name == old:
                node.input[index] = new
        for inner in _inner_graphs(node):
            if old not in {each.name for each in inner.input}:
                _rename_uses(inner, old, new)
                for output in inner.output:
                    if output.name == old:
                        output.name = new


def _inner_graphs(node: Any) -> Iterator[Any]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def _names(graph: Any) -> Iterator[str]:
    for values in (graph.input, graph.output, graph.initializer, graph.value_info):
        yield from (value.name for value in values)
    for node in graph.node:
        yield from node.input
        yield from node.output
        for inner in _inner_graphs(node):
            yield from _names(inner)


def _weight_files(model: Any, directory: Path) -> set[Path]:
    """Raises ExportError for a path out of the export's own directory."""
    files = set()
    for tensor in _tensors(model.graph):
        for entry in tensor.external_data:
            if entry.key == "location":
                path = (directory / entry.value).resolve()
                if directory.resolve() not in path.parents or not path.is_file():
                    raise ExportError(
                        f"the weights {tensor.name!r} are in {entry.value!r}, which is not a file beside the network: "
                        "write the weights into the directory of the network"
                    )
                files.add(path)
    return files


def _tensors(graph: Any) -> Iterator[Any]:
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
        for inner in _inner_graphs(node):
            yield from _tensors(inner)


if __name__ == "__main__":
    _asked = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    Path(sys.argv[2]).write_text(json.dumps(answer(_asked)), encoding="utf-8")
