"""Draws the ensembles of the reference systems as `cdk-triton graph` does: docs/images/graphs/<repository>.svg."""

from __future__ import annotations

from tools.generate import Files, Generator
from tools.generate._shapes import for_dark_pages

from cdk_triton import ModelRepository
from cdk_triton.cli.graph.svg import as_svg
from cdk_triton.drawing import diagrams
from examples.reference_systems.assets import ASSETS

FOLDER = "docs/images/graphs"
REPOSITORIES = (
    "image_classification",
    "onnx_models/images",
    "onnx_models/texts",
    "sentence_embedding",
    "tensorrt_tenants",
    "text_generation",
    "tree_models/wine",
)


def _files() -> Files:
    return {
        f"{FOLDER}/{name.replace('/', '_')}.svg": for_dark_pages(
            as_svg(diagrams(ModelRepository.from_directory(ASSETS / name)))
        ).encode()
        for name in REPOSITORIES
    }


GENERATOR = Generator(_files, obsolete=f"{FOLDER}/*.svg")
