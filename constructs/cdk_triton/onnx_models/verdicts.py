"""The verdicts on the graphs of ONNX files: those that are served, and those that plans are built from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cdk_triton.checks.context import CheckContext, per_check
from cdk_triton.onnx_models.reader.graph import GraphVerdict, onnx_graphs
from cdk_triton.onnx_models.rules.models import onnx_models
from cdk_triton.tensorrt_models.sources import plan_sources

__all__ = ["graph_verdicts"]


@per_check
def graph_verdicts(context: CheckContext) -> Mapping[Path, GraphVerdict]:
    """The verdict on each graph, by the file's place on this machine; a file that cannot be read has none."""
    files = [each.file.source for each in onnx_models(context)]
    files += [source.network.source for source in plan_sources(context) if source.has_recipe]
    return onnx_graphs(files) if files else {}
