"""Graphs that ONNX Runtime refuses or takes, as text; its own verdict is `tests/integration`'s to compare."""

from __future__ import annotations

import onnx.parser

__all__ = ["REFUSED", "TAKEN", "UNREGISTERED", "graph"]

_HEAD = '<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1, "local" : 1]> model '
_X_Y = "(float[N, 4] x) => (float[N, 4] y) "
_FLOATS = "(float[4] x) => (float[4] y) "
_IF = _HEAD + "(bool c, float[4] x, float[3] z) => (float[4] y) { y = If(c) <then_branch = t () => (float[4] a) "
_LOOP = _HEAD + "(int64 n, bool c, float[4] s, float[3] z) => (float[4] y) { y = Loop(n, c, s) "
_FUNCTION = '<domain: "local", opset_import: ["" : 17]> f (x) => (y) '
_OWN_IN_FUNCTION = '<domain: "local", opset_import: ["" : 17, "own" : 1]> f (x) => (y) { y = own.Relu(x) }'

# What is refused: text, and the kind of the first fault.
REFUSED = {
    "a misspelt operator": (_HEAD + _X_Y + "{ y = Gemmm(x) }", "operator"),
    "a misspelt operator of ai.onnx.ml": (_HEAD + _X_Y + "{ y = ai.onnx.ml.Scalr(x) }", "operator"),
    "a misspelt operator of the other name": (_HEAD + _X_Y + "{ y = ai.onnx.Rellu(x) }", "operator"),
    "a misspelt operator that nothing uses": (_HEAD + _X_Y + "{ y = Relu(x) z = Rellu(x) }", "operator"),
    "a misspelt operator in a branch": (
        _IF + "{ a = Relu(x) }, else_branch = e () => (float[4] b) { b = Rellu(x) }> }",
        "operator",
    ),
    "a misspelt operator in a function": (
        _HEAD + _X_Y + "{ y = local.f(x) }" + _FUNCTION + "{ y = Rellu(x) }",
        "operator",
    ),
    "an operator of a newer opset": (_HEAD + _X_Y + "{ y = Gelu(x) }", "newer"),
    "an operator that was removed": (
        _HEAD + '(float[4, 4] x, float[2] s) => (float[4, 4] y) { y = Upsample <mode = "nearest"> (x, s) }',
        "deprecated",
    ),
    "an unknown attribute": (_HEAD + _X_Y + "{ y = Relu <slope = 1> (x) }", "node"),
    "an attribute of another type": (_HEAD + _X_Y + "{ y = Softmax <axis = 1.5> (x) }", "node"),
    "a required attribute is missing": (_HEAD + _X_Y + "{ y = Cast(x) }", "node"),
    "an attribute twice": (_HEAD + _X_Y + "{ y = Softmax <axis = 0, axis = 0> (x) }", "node"),
    "too many inputs": (_HEAD + _X_Y + "{ y = Relu(x, x) }", "node"),
    "too few inputs": (_HEAD + _X_Y + "{ y = Add(x) }", "node"),
    "a required input is empty": (_HEAD + _X_Y + '{ y = Add(x, "") }', "node"),
    "axes as an attribute after opset 12": (
        _HEAD + "(float[4] x) => (float[1, 4] y) { y = Unsqueeze <axes = [0]> (x) }",
        "node",
    ),
    "MatMul": (_HEAD + "(float[N, 4] x, float[5, 6] w) => (float[N, 6] y) { y = MatMul(x, w) }", "shape"),
    "Gemm": (_HEAD + "(float[N, 4] x, float[5, 6] w) => (float[N, 6] y) { y = Gemm(x, w) }", "shape"),
    "Add": (_HEAD + "(float[N, 4] x, float[N, 5] w) => (float[N, 4] y) { y = Add(x, w) }", "shape"),
    "Concat": (_HEAD + "(float[4, 2] x, float[3, 3] w) => (float[N, M] y) { y = Concat <axis = 0> (x, w) }", "shape"),
    "ranks of Conv": (_HEAD + "(float[1, 3, 8] x, float[2, 3, 3, 3] w) => (float[M] y) { y = Conv(x, w) }", "shape"),
    "an axis beyond the rank": (
        _HEAD + "(float[2, 3] x, int64[1] i) => (float[1, 3] y) { y = Gather <axis = 5> (x, i) }",
        "attribute",
    ),
    "a permutation of another rank": (
        _HEAD + "(float[2, 3] x) => (float[M] y) { y = Transpose <perm = [0, 1, 2]> (x) }",
        "attribute",
    ),
    "an axis that cannot be split": (
        _HEAD + "(float[2, 3] x) => (float[M] y) { y, z = Split <axis = 4> (x) }",
        "attribute",
    ),
    "a kernel of another rank": (
        _HEAD + "(float[1, 3, 8, 8] x) => (float[M] y) { y = MaxPool <kernel_shape = [3]> (x) }",
        "attribute",
    ),
    "a type that Cast does not have": (_HEAD + "(float[4] x) => (float[4] y) { y = Cast <to = 99> (x) }", "attribute"),
    "a node with a name": (_HEAD + "(float[4] x, float[3] z) => (float[4] y) { [sum] y = Add(x, z) }", "shape"),
    "a constant that does not fit": (
        _HEAD + "(float[4] x) => (float[4] y) { c = Constant <value = float[3] {1, 2, 3}> () y = Add(x, c) }",
        "shape",
    ),
    "a shape that Reshape cannot make": (
        _HEAD + "(float[4] x) => (float[2, 3] y) <int64[2] s = {-1, 3}> { y = Reshape(x, s) }",
        "shape",
    ),
    "beside an operator of another domain": (
        _HEAD + "(float[4] x, float[3] z) => (float[4] y) { a = com.microsoft.Gelu(x) b = Add(a, x) y = Add(x, z) }",
        "shape",
    ),
    "shapes in a branch": (_IF + "{ a = Relu(x) }, else_branch = e () => (float[4] b) { b = Add(x, z) }> }", "shape"),
    "shapes in a loop": (
        _LOOP + "<body = b (int64 i, bool k, float[4] a) => (bool l, float[4] o) { l = Identity(k) o = Add(a, z) }> }",
        "shape",
    ),
    "shapes in a function": (
        _HEAD
        + "(float[4] x) => (float[4] y) { y = local.f(x) }"
        + _FUNCTION
        + "{ c = Constant <value = float[3] {1, 2, 3}> () y = Add(x, c) }",
        "shape",
    ),
    "types that differ": (_HEAD + "(float[4] x, int64[4] w) => (float[4] y) { y = Add(x, w) }", "type"),
    "a type that an operator does not take": (_HEAD + "(string[4] x) => (string[4] y) { y = Relu(x) }", "type"),
    "an output of another type": (_HEAD + "(float[4] x) => (int64[4] y) { y = Relu(x) }", "type"),
    "value_info of another type": (_HEAD + _FLOATS + "<float16[4] a> { a = Relu(x) y = Relu(a) }", "type"),
    "value_info of another type and no shape": (_HEAD + _FLOATS + "<float16 a> { a = Relu(x) y = Relu(a) }", "type"),
    "value_info of another type for what Cast returns": (
        _HEAD + _FLOATS + "<float a> { a = Cast <to = 10> (x) y = Cast <to = 1> (a) }",
        "type",
    ),
    "value_info of another type that comes last": (
        _HEAD + _FLOATS + "<float[4] a, float16[4] a> { a = Relu(x) y = Relu(a) }",
        "type",
    ),
    "value_info of another type for what nothing uses": (
        _HEAD + _FLOATS + "<float16[4] a> { a = Relu(x) y = Relu(x) }",
        "type",
    ),
    "value_info of another type in a branch": (
        _IF + "<float16 w> { w = Relu(x) a = Relu(w) }, else_branch = e () => (float[4] b) { b = Relu(x) }> }",
        "type",
    ),
    "a default of another shape": (
        _HEAD + "(float[4] x, float[3] w) => (float[4] y) <float[4] w = {1, 2, 3, 4}> { y = Add(x, w) }",
        "type",
    ),
    "an undefined value": (_HEAD + _X_Y + "{ y = Add(x, q) }", "value"),
    "an undefined value in a branch": (
        _IF + "{ a = Relu(q) }, else_branch = e () => (float[4] b) { b = Relu(x) }> }",
        "value",
    ),
    "an output that nothing makes": (_HEAD + "(float[4] x) => (float[4] z) { y = Relu(x) }", "value"),
    "a value that two nodes make": (_HEAD + _X_Y + "{ y = Relu(x) y = Relu(x) }", "value"),
    "a cycle": (_HEAD + _X_Y + "{ y = Add(a, x) a = Relu(y) }", "cycle"),
    "nodes of one name": (_HEAD + _X_Y + "{ [same] a = Relu(x) [same] y = Relu(a) }", "name"),
}

# What ONNX Runtime takes although `onnx.checker` or strict shape inference does not, or although it looks odd.
TAKEN = {
    "sound": _HEAD + _X_Y + "{ y = Relu(x) }",
    "another output shape is declared": _HEAD + "(float[4] x) => (float[5] y) { y = Relu(x) }",
    "another output rank is declared": _HEAD + "(float[4] x) => (float[5, 5] y) { y = Relu(x) }",
    "stale value_info": _HEAD + "(float[4] x) => (float[4] y) <float[7] a> { a = Relu(x) y = Relu(a) }",
    "value_info of another type that is not last": (
        _HEAD + _FLOATS + "<float16[4] a, float[4] a> { a = Relu(x) y = Relu(a) }"
    ),
    "value_info of another type for an unknown name": _HEAD + _FLOATS + "<float16[4] b> { a = Relu(x) y = Relu(a) }",
    "value_info of another type for an input": _HEAD + _FLOATS + "<float16[4] x> { a = Relu(x) y = Relu(a) }",
    "value_info of another type for an output": _HEAD + _FLOATS + "<float16[4] y> { a = Relu(x) y = Relu(a) }",
    "value_info of another type for a constant": (
        _HEAD + _FLOATS + "<float16[1] a> { a = Constant <value = float[1] {1}> () y = Add(x, a) }"
    ),
    "value_info of another type for a value of a branch": (
        _HEAD
        + "(bool c, float[4] x) => (float[4] y) <float16 a> { y = If(c) <then_branch = t () => (float[4] a) "
        + "{ a = Relu(x) }, else_branch = e () => (float[4] b) { b = Relu(x) }> }"
    ),
    "unsorted": _HEAD + _X_Y + "{ y = Relu(a) a = Relu(x) }",
    "a branch uses what comes later": (
        _IF + "{ a = Relu(w) }, else_branch = e () => (float[4] b) { b = Relu(x) }> w = Relu(x) }"
    ),
    "com.microsoft without an import": (
        '<ir_version: 8, opset_import: ["" : 17]> model ' + _X_Y + "{ a = com.microsoft.Gelu(x) y = Relu(a) }"
    ),
    "no import of ONNX's own domain": (
        '<ir_version: 8, opset_import: ["com.microsoft" : 1]> model ' + _X_Y + "{ y = Relu(x) }"
    ),
    "the other name of ONNX's own domain": (
        '<ir_version: 8, opset_import: ["ai.onnx" : 17]> model ' + _X_Y + "{ y = ai.onnx.Relu(x) }"
    ),
    "an operator that ONNX Runtime adds": (
        _HEAD + "(float[4, 4] x, float[4] s) => (float[4, 4] y) { y = SimplifiedLayerNormalization(x, s) }"
    ),
    "LayerNormalization before its opset": (
        '<ir_version: 8, opset_import: ["" : 13]> model '
        "(float[4, 4] x, float[4] s) => (float[4, 4] y) { y = LayerNormalization(x, s, s) }"
    ),
    "an internal attribute": _HEAD + _X_Y + "{ y = Relu <__mark = 1> (x) }",
    "dimensions of unlike names": _HEAD + "(float[N, 4] x, float[M, 4] w) => (float[N, 4] y) { y = Add(x, w) }",
    "a function that nothing calls": _HEAD + _X_Y + "{ y = Relu(x) }" + _FUNCTION + "{ y = Rellu(x) }",
    "a function in a domain of one's own": _HEAD + _X_Y + "{ y = local.f(x) }" + _FUNCTION + "{ y = Relu(x) }",
    "a function that nothing calls, of an unknown domain": (_HEAD + _X_Y + "{ y = Relu(x) }" + _OWN_IN_FUNCTION),
    "an operator of com.microsoft": _HEAD + _X_Y + "{ y = com.microsoft.QuickGelu(x) }",
    "a function of the same name": (
        '<ir_version: 8, opset_import: ["" : 17]> model '
        + _X_Y
        + '{ y = Relu(x) }<domain: "", opset_import: ["" : 17]> Relu (x) => (y) { y = Abs(x) }'
    ),
    "branches of unlike ranks": (
        _HEAD + "(bool c, float[4] x, float[2, 2] z) => (float[M] y) { y = If(c) <then_branch = t () => (float[4] a) "
        "{ a = Relu(x) }, else_branch = e () => (float[2, 2] b) { b = Relu(z) }> }"
    ),
    "a loop that declares another shape": (
        _LOOP + "<body = b (int64 i, bool k, float[5] a) => (bool l, float[5] o) { l = Identity(k) o = Relu(a) }> }"
    ),
    "an optional input is empty": _HEAD + '(float[4] x, float high) => (float[4] y) { y = Clip(x, "", high) }',
    "an output that is an input": _HEAD + "(float[4] x) => (float[4] x) { y = Relu(x) }",
    "a dimension of weights that runs only show": (
        _HEAD + "(float[1, 3, 8, 8] x, float[2, 4, 3, 3] w) => (float[1, 2, 6, 6] y) { y = Conv(x, w) }"
    ),
    "a negative size before MatMul": (
        _HEAD + "(float[-1, -1] x, float[4, 6] w) => (float[-1, 6] y) { y = MatMul(x, w) }"
    ),
    "a negative size before Add": _HEAD + "(float[-1, 4] x, float[3, 4] w) => (float[3, 4] y) { y = Add(x, w) }",
    "a negative size before Concat": (
        _HEAD + "(float[2, -1] x, float[2, 4] w) => (float[M, 4] y) { y = Concat <axis = 0> (x, w) }"
    ),
}

# Operators that no ONNX Runtime registers without a library.
UNREGISTERED = {
    "an operator that com.microsoft does not have": _HEAD + _X_Y + "{ y = com.microsoft.QuickerGelu(x) }",
    "an operator of one's own": _HEAD + _X_Y + "{ y = local.Relu(x) }",
    "an operator that nothing uses": _HEAD + _X_Y + "{ y = Relu(x) z = local.Relu(x) }",
    "a domain that is not imported": _HEAD + _X_Y + "{ y = own.Relu(x) }",
    "a misspelt domain": _HEAD + _X_Y + "{ y = com.microsft.QuickGelu(x) }",
    "an operator of the extensions": (
        '<ir_version: 8, opset_import: ["" : 17, "ai.onnx.contrib" : 1]> model '
        + _X_Y
        + "{ y = ai.onnx.contrib.GaussianBlur(x) }"
    ),
    "an optimiser of ONNX's training domain": (
        '<ir_version: 8, opset_import: ["" : 17, "ai.onnx.preview.training" : 1]> model '
        + _X_Y
        + "{ y = ai.onnx.preview.training.Adam(x) }"
    ),
    "an internal domain": _HEAD + _X_Y + "{ y = com.microsoft.nchwc.Foo(x) }",
    "an operator of one's own in a branch": (
        _IF + "{ a = local.Relu(x) }, else_branch = e () => (float[4] b) { b = Relu(x) }> }"
    ),
    "an operator of one's own in a function": (_HEAD + _X_Y + "{ y = local.f(x) }" + _OWN_IN_FUNCTION),
    "another operator than the function": _HEAD + _X_Y + "{ y = local.g(x) }" + _FUNCTION + "{ y = Relu(x) }",
}


def graph(text: str, *, names: bool = True) -> onnx.ModelProto:
    """The model of a text; a node that begins with `[name]` has that name."""
    model: onnx.ModelProto = onnx.parser.parse_model(text)
    if not names:
        model.graph.name = ""
    return model
