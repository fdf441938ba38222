"""CT170 to CT174: whether ONNX Runtime would take the graph of an ONNX file.

`cdk_triton.onnx_models.reader.graph` judges a graph in a process of its own, once for each content.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from cdk_triton.checks.context import CheckContext, per_check
from cdk_triton.checks.derived.releases import known_release
from cdk_triton.checks.registry import Problem, rule
from cdk_triton.onnx_models.reader.file import onnx_data_types
from cdk_triton.onnx_models.reader.graph import GraphFault, GraphVerdict
from cdk_triton.onnx_models.rules.models import OnnxModelFile, onnx_models
from cdk_triton.onnx_models.verdicts import graph_verdicts
from cdk_triton.tensorrt_models.sources import plan_sources
from cdk_triton.triton.findings import Severity

__all__ = ["judged_models"]

# VerifyNodeAndOpMatch, InferAndVerifyTypeMatch and BuildConnections, which every load of a graph runs.
_GRAPH = (
    "https://github.com/microsoft/onnxruntime/blob/0bf0ac79272a8ac142c1a1809fd92e4a5478e441/"
    "onnxruntime/core/graph/graph.cc"
)


@per_check
def judged_models(context: CheckContext) -> Iterator[tuple[OnnxModelFile, GraphVerdict]]:
    """The ONNX files that the server would load, each with the verdict on its graph."""
    verdicts = graph_verdicts(context)
    for each in onnx_models(context):
        if each.file.source in verdicts:
            yield each, verdicts[each.file.source]


def _faults(context: CheckContext, *kinds: str) -> Iterator[tuple[OnnxModelFile, GraphFault]]:
    """The faults of some kinds, once for each operator and reason."""
    for each, verdict in judged_models(context):
        first: dict[tuple[str, str], GraphFault] = {}
        for fault in verdict.faults:
            if fault.kind in kinds:
                first.setdefault((fault.operator, fault.reason), fault)
        for fault in first.values():
            yield each, fault


def _problem(each: OnnxModelFile, fault: GraphFault, what: str, fix: str, meant: str = "") -> Problem:
    fix = f"write {meant!r} if that is meant, or {fix}" if meant else fix
    return each.unloadable(f"{fault.subject} {what}", fault.reason, fix, joint="; ")


@rule("CT170", Severity.ERROR, "an ONNX file has an operator that ONNX does not have", source=_GRAPH)
def unknown_operator(context: CheckContext) -> Iterator[Problem]:
    """An operator of ONNX's own domains is not, or is no longer, in the opset that the file declares.

    The server does not load the model. Correct the name of the operator, or export the model with an opset that
    contains the operator.

    Example:
        # model/config.pbtxt
        backend: "onnxruntime"
        # model/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        model (float[N, 4] IN) => (float[N, 4] OUT) { OUT = Rellu(IN) }

    Instead:
        # model/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        model (float[N, 4] IN) => (float[N, 4] OUT) { OUT = Relu(IN) }

    Limits:
        The rule skips a model with `op_library_filename`, because the library may define the operator. CT179 checks
        operators of other domains. The rule uses the operators of the installed package `onnx`, not the operators of
        the release's ONNX Runtime.
    """
    for each, fault in _faults(context, "operator", "newer", "deprecated"):
        if each.config.model_operations.op_library_filename:
            continue
        if fault.kind == "deprecated":
            fix = "export the model with an older opset, or without this operator"
            yield _problem(each, fault, "was removed from ONNX", fix)
        elif fault.kind == "newer":
            fix = f"export the model with opset {fault.fix} or newer, which has {fault.operator!r}"
            yield _problem(each, fault, "is newer than the opset of the file", fix)
        else:
            fix = "export the model with ONNX's operators only, or with a domain of its own for your operator"
            yield _problem(each, fault, "is not an ONNX operator", fix, fault.fix)


@rule("CT171", Severity.ERROR, "a node of an ONNX file does not match its operator", source=_GRAPH)
def unlike_operator(context: CheckContext) -> Iterator[Problem]:
    """A node has an unknown attribute, lacks a required attribute, or has too many or too few inputs.

    The server does not load the model. The rule uses the definition of the operator in the opset that the file
    declares. For example, the axes of `Unsqueeze` are an attribute up to opset 12, and an input from opset 13 on.

    Example:
        # model/config.pbtxt
        backend: "onnxruntime"
        # model/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        model (float[N, 4] IN) => (float[N, 4] OUT) { OUT = Softmax <axes = 1> (IN) }

    Instead:
        # model/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        model (float[N, 4] IN) => (float[N, 4] OUT) { OUT = Softmax <axis = 1> (IN) }
    """
    for each, fault in _faults(context, "node"):
        fix = "correct the export of the model, or export with an opset that defines the operator this way"
        yield _problem(each, fault, "does not match its definition in the file's opset", fix, fault.fix)


# Kind of a fault → the fault, and its fix.
_OPERANDS_FIX = "export the model again with weights and inputs that fit together"
# A conversion to another type often leaves the declarations as they were.
_REDECLARED = "Inferred elem type differs from existing elem type"
_REDECLARED_FIX = (
    "declare the first type, which the operator returns, or convert the result with a Cast node, because a declaration "
    "converts nothing; an entry of value_info may also be deleted"
)
_UNFIT = {
    "shape": ("has inputs whose shapes do not fit together", _OPERANDS_FIX),
    "type": ("has an input or output of the wrong type", _OPERANDS_FIX),
    "attribute": (
        "has an attribute that does not fit its inputs",
        "correct the attribute in the export of the model, or give the operator inputs that fit the attribute",
    ),
}


def _type_name(number: re.Match[str]) -> str:
    return onnx_data_types().get(int(number[1]), number[0])


@rule("CT172", Severity.ERROR, "operands in an ONNX file do not fit together", source=_GRAPH)
def unfit_operands(context: CheckContext) -> Iterator[Problem]:
    """An operator cannot combine the shapes or types of its inputs, or its attributes do not fit its inputs.

    The server does not load the model. The shapes follow from the inputs of the file, the weights and the small
    constants. When ONNX Runtime loads the file, it infers the shapes with the same code as the rule.

    Example:
        # model/config.pbtxt
        backend: "onnxruntime"
        # model/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        model (float[N, 4] IN, float[3, 2] W) => (float[N, 2] OUT) { OUT = MatMul(IN, W) }

    Instead:
        # model/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        model (float[N, 4] IN, float[4, 2] W) => (float[N, 2] OUT) { OUT = MatMul(IN, W) }

    Limits:
        The rule does not check shapes that ONNX Runtime finds only when it runs the graph. Of the results that the file
        declares (`value_info`, outputs), it checks the types, but not the shapes. ONNX Runtime only logs a warning if a
        declared shape differs from the inferred shape.
    """
    redeclared = set()
    for each, fault in _faults(context, *_UNFIT):
        what, fix = _UNFIT[fault.kind]
        if fault.reason.startswith(_REDECLARED):
            if each.file.path in redeclared:
                continue  # the other declaration of a value that differs from its neighbours
            redeclared.add(each.file.path)
            what, fix = "has a result that the file declares with another type (value_info, output)", _REDECLARED_FIX
            fault = replace(fault, reason=re.sub(r"\((\d+)\)", _type_name, fault.reason))
        elif fault.kind == "type" and not fault.operator:
            what = "has an initializer that does not match the input of the same name"
        yield _problem(each, fault, what, fix)


@rule("CT173", Severity.ERROR, "the values in an ONNX graph are not connected", source=_GRAPH)
def unconnected_values(context: CheckContext) -> Iterator[Problem]:
    """A node uses a value that nothing defines, two nodes define the same value, or nodes form a cycle.

    The rule also reports an output of the graph that nothing defines, and two nodes with the same name. The server does
    not load the model. Export the model again.

    Example:
        # model/config.pbtxt
        backend: "onnxruntime"
        # model/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        model (float[N, 4] IN) => (float[N, 4] OUT) { OUT = Relu(INPUT) }

    Instead:
        # model/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        model (float[N, 4] IN) => (float[N, 4] OUT) { OUT = Relu(IN) }

    Limits:
        The rule does not check the order of the nodes, because ONNX Runtime sorts them.
    """
    for each, fault in _faults(context, "value", "cycle", "name"):
        what = (
            "uses a value that the graph does not define" if fault.operator else "has an output that it does not define"
        )
        if fault.kind == "cycle":
            what = "depends on its own result"
        elif fault.kind == "name":
            what = "has two nodes with the same name"
        elif not fault.operator and fault.reason.startswith("Duplicate definition"):
            what = "defines a value twice"
        yield _problem(each, fault, what, "export the model again", fault.fix)


@rule("CT174", Severity.WARNING, "the graph of an ONNX file was not checked", source=_GRAPH)
def unchecked_graph(context: CheckContext) -> Iterator[Problem]:
    """The check of the graph reached a limit, or the installed package `onnx` cannot check the graph.

    The check of a graph may use 30 seconds of processor time and 4 GiB of memory. If the check ends without a result,
    CT170 to CT173, CT179 and CT706 find nothing in this graph. A fault in the graph then appears when the server loads
    the model. If the opset is too new for the installed `onnx`, upgrade `onnx`. Otherwise, acknowledge the warning if
    you are sure that the server loads the model.

    Example:
        # model/config.pbtxt
        backend: "onnxruntime"
        # model/1/model.onnx
        <ir_version: 8, opset_import: ["" : 99]>
        model (float[N, 4] IN) => (float[N, 4] OUT) { OUT = Relu(IN) }

    Instead:
        # model/1/model.onnx
        <ir_version: 8, opset_import: ["" : 17]>
        model (float[N, 4] IN) => (float[N, 4] OUT) { OUT = Relu(IN) }
    """
    files = [each.file for each in onnx_models(context)]
    files += [source.network for source in plan_sources(context) if source.has_recipe]
    for file in dict.fromkeys(files):
        verdict = graph_verdicts(context).get(file.source)
        if verdict is None or (verdict.is_too_new and known_release(context.platform) is not None):
            continue  # CT137 knows what the release reads
        if verdict.unjudged:
            yield Problem(
                file.path,
                f"the graph of the file was not checked, because {verdict.unjudged}",
                "upgrade onnx, or " * verdict.is_too_new
                + "acknowledge CT174 if you know that the server loads the model",
            )
