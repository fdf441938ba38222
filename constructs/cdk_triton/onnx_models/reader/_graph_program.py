"""A program of its own: whether ONNX Runtime would take a graph, as far as ONNX's own definitions of operators show.

It reads graphs from standard input, each with its length before it, and answers each with a line of JSON. ONNX is
native code that may end the process, or need all memory: the parent (`onnx_graph.py`) is prepared for that.

ONNX Runtime loads a graph with the same code: it checks each node against the operator's definition, and runs the
operator's shape inference, whose exceptions end the loading (`Graph::VerifyNodeAndOpMatch`, `InferAndVerifyTypeMatch`).
`onnx.checker` and `onnx.shape_inference` alone are stricter, so this program removes beforehand what ONNX Runtime does
not compare: declared shapes of results, the order of nodes, and operators that ONNX does not define.
"""

from __future__ import annotations

import json
import re
import resource
import signal
import struct
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from difflib import get_close_matches
from typing import Any, NamedTuple

# Operators that ONNX Runtime adds to ONNX's own domain: `get_all_operator_schema()` of onnxruntime 1.31.1.
_ADDED = {
    *("Affine", "Crop", "DisentangledAttention_TRT", "DynamicSlice", "EfficientNMS_TRT", "GRUUnit", "GivenTensorFill"),
    *("ImageScaler", "LayerNormalization", "MeanVarianceNormalization", "MemcpyFromHost", "MemcpyToHost"),
    *("MultilevelCropAndResize_TRT", "ParametricSoftplus", "PyramidROIAlign_TRT", "Scale", "ScaledTanh"),
    *("SimplifiedLayerNormalization", "ThresholdedRelu"),
}
_JUDGED = ("", "ai.onnx.ml")
_ORT = ("com.microsoft", "com.ms.internal.nhwc")
# Operators that ONNX Runtime does not infer, or not as this ONNX does.
_OTHERWISE = {"Constant", "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"}
_CONSTANTS = [[f"value{suffix}"] for suffix in ("", "_float", "_floats", "_int", "_ints", "_string", "_strings")]
_INFERENCE = re.compile(r".*\(op_type:[^,()]*, node name: #(\d+)\): (?:\[(\w+)\] )?(.+)", re.DOTALL)
_NUMBER = re.compile(r" \(#\d+\)")  # a node by the name that it has here
# What follows from a type or a value that only ONNX Runtime knows.
_UNKNOWN = ("is null", "xternal", "No opset import", "has no type", "Type info is expected")
_MOST_FAULTS, _MOST_FOREIGN = 20, 500

Fault = dict[str, str]


class Node(NamedTuple):
    """The node of a fault; all of it is empty for a fault of the whole graph."""

    operator: str = ""
    name: str = ""
    output: str = ""
    inputs: int = 0
    attributes: tuple[str, ...] = ()
    domain: str = ""

    @classmethod
    def of(cls, node: Any) -> Node:
        """A node as the file has it."""
        output = next((name for name in node.output if name), "")
        attributes = tuple(each.name for each in node.attribute)
        return cls(node.op_type, node.name, output, len(node.input), attributes, node.domain)


_GRAPH = Node()


class Judge:
    """One graph: its nodes get numbers for names, so that the message of shape inference can be traced to them."""

    def __init__(self, onnx: Any, model: Any) -> None:
        self._onnx = onnx
        self._model = model
        self._nodes: list[Node] = []
        self._vague: set[int] = set()  # numbers of the nodes whose inputs may have types that nobody knows here
        self._is_sorted = True
        self.faults: list[Fault] = []
        self.foreign: list[Fault] = []  # operators of domains that ONNX does not judge, once each
        self._opsets = _opsets(model.opset_import)
        self._functions = {(_domain(each.domain), each.name): each for each in model.functions}
        self._newest = onnx.defs.onnx_opset_version()

    def judge(self) -> None:
        """Collect the faults.

        Raises:
            NotImplementedError: the graph is of a newer opset than this ONNX.
        """
        if self._opsets.get("", 0) > self._newest:
            raise NotImplementedError(f"the installed onnx does not support the opset {self._opsets['']} of the file")
        self._graph(self._model.graph, frozenset(), self._opsets)
        self._called_functions()
        if self._opsets.get("") and self._is_sorted:
            self._infer()

    def _called_functions(self) -> None:
        """Judge the bodies of the called functions, and remove the others, which ONNX Runtime does not judge."""
        called: dict[tuple[str, str], Any] = {}
        pending = [self._model.graph.node]
        while pending:
            for node in _nodes_below(pending.pop()):
                key = (node.domain, node.op_type)
                if key in self._functions and key not in called:
                    called[key] = self._functions[key]
                    opsets = _opsets(called[key].opset_import)
                    self._nodes_of(called[key], frozenset(called[key].input), opsets)
                    pending.append(called[key].node)
        bodies = [each for key, each in self._functions.items() if key in called]
        del self._model.functions[:]
        self._model.functions.extend(bodies)

    def _graph(self, graph: Any, outer: frozenset[str], opsets: dict[str, int]) -> bool:
        """Judge a graph; whether a node had to be removed from it."""
        initial = {each.name for each in graph.initializer} | {each.values.name for each in graph.sparse_initializer}
        given = Counter(each.name for each in graph.input)
        made = Counter(name for node in graph.node for name in node.output if name)
        for kind, words, twice in (
            ("value", "Duplicate definition of name", _twice(made) | made.keys() & (initial | given.keys())),
            ("value", "Duplicate definition-site for", _twice(given)),
            ("name", "two nodes with same node name", _twice(Counter(n.name for n in graph.node if n.name))),
        ):
            for name in sorted(twice):
                self._add(kind, _GRAPH, f"{words} ({name})")
        visible = outer | initial | set(given) | set(made)
        for name in sorted({each.name for each in graph.output} - visible):
            self._add("value", _GRAPH, f"Graph output ({name}) does not exist in the graph")
        _forget_declared_shapes(graph)
        for reason in _default_faults(graph):
            self._add("type", _GRAPH, reason)
        removed = self._nodes_of(graph, visible, opsets)
        self._sort(graph)
        return removed

    def _nodes_of(self, owner: Any, visible: frozenset[str], opsets: dict[str, int]) -> bool:
        """Judge the nodes of a graph or function, and remove those with unknown results."""
        visible |= {name for node in owner.node for name in node.output}
        kept, unknown = [], set()
        for node in owner.node:
            number = len(self._nodes)
            self._nodes.append(Node.of(node))
            self._add_foreign(self._nodes[number])
            faults = [*self._contract(node, opsets), *_undefined(node, visible)]
            for kind, reason, fix in faults:
                self._add(kind, self._nodes[number], reason, fix)
            is_holed = False
            for below in _graphs_of(node):
                is_holed = self._graph(below, visible, opsets) or is_holed
            if faults or not self._is_known(node, opsets):
                unknown.update(node.output)
                continue
            if is_holed or any(name in unknown for name in _used(node)):
                self._vague.add(number)
                unknown.update(node.output)
            node.name = f"#{number}"
            kept.append(type(node).FromString(node.SerializeToString()))
        changed = len(kept) < len(owner.node)
        del owner.node[:]
        owner.node.extend(kept)
        return changed

    def _is_known(self, node: Any, opsets: dict[str, int]) -> bool:
        """Whether shape inference supports the node."""
        if (node.domain, node.op_type) in self._functions:
            return True
        if node.op_type == "Constant" and [each.name for each in node.attribute] not in _CONSTANTS:
            return False
        return node.domain in _JUDGED and node.domain in opsets and self._schema(node, opsets) is not None

    def _schema(self, node: Any, opsets: dict[str, int]) -> Any:
        """The definition of the node's operator at its version; None where ONNX has none."""
        with suppress(self._onnx.defs.SchemaError):
            newest = opsets.get(node.domain, 2**31 - 1)
            return self._onnx.defs.get_schema(node.op_type, newest, node.domain)
        return None

    def _contract(self, node: Any, opsets: dict[str, int]) -> Iterator[tuple[str, str, str]]:
        """The faults of a node by the definition of its operator: kind, reason, fix."""
        if node.domain not in _JUDGED or (node.domain, node.op_type) in self._functions:
            return
        schema = self._schema(node, opsets)
        if schema is None:
            if node.domain or node.op_type not in _ADDED:
                version = opsets.get(node.domain)
                where = "" if version is None else f" with domain_version of {version}"
                kind, fix = self._instead(node)
                yield kind, f"No Op registered for {node.op_type}{where}", fix
        elif node.domain == "" and (node.op_type in _ADDED or node.op_type == "Constant"):
            return  # ONNX Runtime has a definition of its own, and makes an initializer of a constant before it looks
        elif schema.deprecated:
            version = opsets.get(node.domain, self._newest)
            yield "deprecated", f"Op registered for {node.op_type} is deprecated in domain_version of {version}", ""
        elif node.domain in opsets:
            # The first alone: one mistake, such as another opset, often makes several.
            faults = (*_count_faults(node, schema), *_attribute_faults(node, schema, self._onnx))
            yield from (("node", *fault) for fault in faults[:1])

    def _instead(self, node: Any) -> tuple[str, str]:
        """The kind of an unknown operator's fault, and its fix: the opset that has it, or the operator meant."""
        with suppress(self._onnx.defs.SchemaError):
            versions = [
                each.since_version
                for each in self._onnx.defs.get_all_schemas_with_history()
                if (each.domain, each.name) == (node.domain, node.op_type)
            ]
            if versions:
                return "newer", str(min(versions))
        names = {each.name for each in self._onnx.defs.get_all_schemas() if each.domain == node.domain}
        return "operator", _closest(node.op_type, names)

    def _sort(self, graph: Any) -> None:
        """Put the nodes into an order in which each follows those whose results it uses; ONNX Runtime does, too."""
        maker = {name: index for index, node in enumerate(graph.node) for name in node.output if name}
        needs = [{maker[name] for name in _used(node) if name in maker} for node in graph.node]
        users: dict[int, list[int]] = {}
        for index, each in enumerate(needs):
            for maker_index in each:
                users.setdefault(maker_index, []).append(index)
        left = [len(each) for each in needs]
        order = [index for index, count in enumerate(left) if count == 0]
        for index in order:  # grows while we walk
            for user in users.get(index, ()):
                left[user] -= 1
                if left[user] == 0:
                    order.append(user)
        if len(order) < len(left):
            self._is_sorted = False
            if any(fault["kind"] == "value" for fault in self.faults):
                return  # a value that two nodes make looks like a cycle
            first = graph.node[next(index for index, count in enumerate(left) if count)]
            self._add("cycle", self._nodes[int(first.name[1:])], "the graph is not acyclic")
        elif order != sorted(order):
            nodes = [type(graph.node[index]).FromString(graph.node[index].SerializeToString()) for index in order]
            del graph.node[:]
            graph.node.extend(nodes)

    def _infer(self) -> None:
        """Run ONNX's shape inference: once for shapes, which collects its faults, and once for types."""
        for domain in {node.domain for node in _nodes_below(self._model.graph.node)} - {*self._opsets}:
            self._model.opset_import.add(domain=domain, version=1)
        data = self._model.SerializeToString()
        for check_type in (False, True):
            try:
                self._onnx.shape_inference.infer_shapes(data, check_type, strict_mode=True)
            except self._onnx.shape_inference.InferenceError as error:
                for line in str(error).splitlines():
                    self._add_inferred(line)
            except MemoryError:
                raise
            except Exception:
                return  # onnx itself stumbles over something odd; of that nothing is known
            if self.faults:
                return

    def _add_inferred(self, line: str) -> None:
        match = _INFERENCE.fullmatch(line)
        if match is None or any(words in line for words in _UNKNOWN):
            return
        number, kind, reason = int(match[1]), match[2] or "", _NUMBER.sub("", match[3]).strip().rstrip(".")
        if number >= len(self._nodes) or (number in self._vague and kind != "ShapeInferenceError"):
            return
        node = self._nodes[number]
        if node.operator in _ADDED or node.operator in _OTHERWISE:
            return
        found = "shape" if kind == "ShapeInferenceError" else "type"
        self._add("attribute" if _is_of_attribute(node, found, reason) else found, node, reason)

    def _add(self, kind: str, node: Node, reason: str, fix: str = "") -> None:
        fault = _fault(kind, node, reason, fix)
        if fault not in self.faults and len(self.faults) < _MOST_FAULTS:
            self.faults.append(fault)

    def _add_foreign(self, node: Node) -> None:
        """Remember an operator that another library than ONNX defines, if a function of the file does not."""
        key = (node.domain, node.operator)
        if node.domain in _JUDGED or key in self._functions or len(self.foreign) >= _MOST_FOREIGN:
            return
        if not any((each["domain"], each["operator"]) == key for each in self.foreign):
            # The graph's imports decide in a function too. ONNX Runtime imports the domains that it registers.
            reason = f"{node.domain}:{node.operator}(-1) is not a registered function/op"
            if node.domain not in self._opsets and not node.domain.startswith(_ORT):
                reason = f"No opset import for domain '{node.domain}'"
            self.foreign.append(_fault("foreign", node, reason, ""))


def _fault(kind: str, node: Node, reason: str, fix: str) -> Fault:
    said = {"kind": kind, "operator": node.operator, "node": node.name, "output": node.output, "domain": node.domain}
    return {**said, "reason": reason, "fix": fix}


def _is_of_attribute(node: Node, kind: str, reason: str) -> bool:
    """Whether an attribute does not fit the inputs; operators report that as a fault of either kind."""
    is_named = any(re.search(rf"\b{re.escape(name)}\b", reason) for name in node.attributes)
    return is_named or (kind == "shape" and bool(node.attributes) and node.inputs == 1)


def _count_faults(node: Any, schema: Any) -> Iterator[tuple[str, str]]:
    """Too few or too many inputs or outputs, and required ones that are left empty."""
    identity = f"Node with schema({schema.domain}::{schema.name}:{schema.since_version})"
    for what, names, formal, low, high in (
        ("input", node.input, schema.inputs, schema.min_input, schema.max_input),
        ("output", node.output, schema.outputs, schema.min_output, schema.max_output),
    ):
        if not low <= len(names) <= high:
            yield f"{identity} has {what} size {len(names)} not in range [min={low}, max={high}]", ""
            continue
        for index, (name, parameter) in enumerate(zip(names, formal, strict=False)):
            if not name and parameter.option.name == "Single":
                yield f"{what} {index} is marked single but has an empty string in the graph", ""


def _attribute_faults(node: Any, schema: Any, onnx: Any) -> Iterator[tuple[str, str]]:
    types = onnx.AttributeProto.AttributeType
    names = [each.name for each in node.attribute]
    for each in node.attribute:
        known = schema.attributes.get(each.name)
        if known is None:
            if not each.name.startswith("__"):  # internal symbols are skipped there, too
                reason = f"Unrecognized attribute: {each.name} for operator {node.op_type}"
                yield reason, _closest(each.name, schema.attributes)
        elif each.type and not each.ref_attr_name and each.type != int(known.type.value):
            wanted, found = known.type.name, types.Name(each.type)
            yield f"Mismatched attribute type in '{each.name}'. Expected: '{wanted}', actual: '{found}'", ""
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"Attribute '{name}' appeared multiple times", ""
    for name, known in schema.attributes.items():
        if known.required and name not in names:
            yield f"Required attribute '{name}' is missing", ""


def _undefined(node: Any, visible: frozenset[str]) -> Iterator[tuple[str, str, str]]:
    for name in node.input:
        if name and name not in visible:
            reason = f"Node input '{name}' is not a graph input, initializer, or output of a previous node"
            yield "value", reason, _closest(name, visible)


def _default_faults(graph: Any) -> Iterator[str]:
    """Inputs whose default has another type or shape."""
    given = {each.name: each.type.tensor_type for each in graph.input if each.type.HasField("tensor_type")}
    for each in graph.initializer:
        declared = given.get(each.name)
        if declared is None:
            continue
        if declared.elem_type not in (0, each.data_type):
            yield f"Data in initializer '{each.name}' has another element type than its usage in the graph expects"
        elif declared.HasField("shape"):
            dims = [size.dim_value if size.HasField("dim_value") else None for size in declared.shape.dim]
            pairs = zip(dims, each.dims, strict=False)
            if len(dims) != len(each.dims) or any(size is not None and size != found for size, found in pairs):
                yield f"Shape of initializer {each.name} does not match"


def _closest(name: str, known: Iterable[str]) -> str:
    return next(iter(get_close_matches(name, list(known)[:5000], n=1)), "")


def _opsets(imports: Any) -> dict[str, int]:
    return {_domain(each.domain): each.version for each in imports}


def _domain(name: str) -> str:
    return "" if name == "ai.onnx" else name


def _graphs_of(node: Any) -> Iterator[Any]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def _nodes_below(nodes: Any) -> Iterator[Any]:
    """The nodes, and those of the graphs in them."""
    for node in nodes:
        yield node
        for graph in _graphs_of(node):
            yield from _nodes_below(graph.node)


def _used(node: Any) -> Iterator[str]:
    """The names of the values that a node uses, those that its graphs take from outside included."""
    for each in _nodes_below([node]):
        yield from each.input


def _twice(names: Counter[str]) -> set[str]:
    return {name for name, count in names.items() if count > 1}


def _forget_declared_shapes(graph: Any) -> None:
    """Remove what ONNX Runtime does not compare: shapes of results, and sizes below 0, which some exporters write."""
    # Of `value_info`, it compares the last type of each result, after it has made initializers of constants.
    results = {name for node in graph.node if node.op_type != "Constant" for name in node.output}
    types = {each.name: each.type.tensor_type.elem_type for each in graph.value_info if each.name in results}
    del graph.value_info[:]
    for name in filter(types.get, types):
        graph.value_info.add(name=name).type.tensor_type.elem_type = types[name]
    for each in graph.input:
        for size in each.type.tensor_type.shape.dim if each.type.HasField("tensor_type") else ():
            if size.dim_value < 0:
                size.ClearField("dim_value")
    for each in graph.output:
        if each.type.HasField("tensor_type"):
            each.type.tensor_type.ClearField("shape")


def _normalise_domains(model: Any) -> None:
    """Write ONNX's own domain one way; it has two names."""
    nodes = (node for owner in (model.graph, *model.functions) for node in _nodes_below(owner.node))
    imports = (each for owner in (model, *model.functions) for each in owner.opset_import)
    for each in (*nodes, *imports):
        each.domain = _domain(each.domain)


def answer(data: bytes, onnx: Any) -> dict[str, Any]:
    """Judge the graph in a serialised `ModelProto`."""
    model = onnx.ModelProto.FromString(data)
    _normalise_domains(model)
    judge = Judge(onnx, model)
    try:
        judge.judge()
    except NotImplementedError as error:
        return {"unjudged": str(error)}
    except MemoryError:
        return {"unjudged": "its check needs more memory than the limit"}
    return {"unjudged": "", "faults": judge.faults, "foreign": judge.foreign}


def main() -> None:
    """Answer requests until standard input ends; the arguments are the limits: seconds of processor time, and bytes."""
    seconds, most_bytes = float(sys.argv[1]), int(sys.argv[2])
    with suppress(OSError, ValueError):  # not every system has the limit
        resource.setrlimit(resource.RLIMIT_AS, (most_bytes, most_bytes))
    failure = ""
    try:
        import onnx.defs
        import onnx.shape_inference
    except (ImportError, MemoryError, OSError) as error:
        failure = f"{type(error).__name__}: {error}"
    while header := sys.stdin.buffer.read(8):
        data = sys.stdin.buffer.read(struct.unpack(">Q", header)[0])
        signal.setitimer(signal.ITIMER_PROF, seconds)  # its signal ends the process, native code included
        found = {"unjudged": f"onnx cannot be imported: {failure}"} if failure else answer(data, onnx)
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
