"""From sources to archives in the store: recipes, keys, digests, build plans, the archive writer, the bucket's layout.

The package is internal but for `write_archive`; users import the recipes from `cdk_triton`. Nothing here imports
`aws_cdk`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdk_triton._lazy import lazy_names

if TYPE_CHECKING:
    from cdk_triton._file_cache import cache_directory
    from cdk_triton.artifacts.archive import Archive, write_archive
    from cdk_triton.artifacts.build_plan import ensemble_document, platform_document
    from cdk_triton.artifacts.contents import PLACEHOLDER
    from cdk_triton.artifacts.keys import BUILDER_VERSION, artifact_key, source_key, sources_key
    from cdk_triton.artifacts.recipes import (
        BuildRecipe,
        CondaEnvironment,
        DaliPipeline,
        OnnxExport,
        Parity,
        S3File,
        TensorRTPlan,
        Tolerance,
        WheelEnvironment,
        recipes_of,
    )
    from cdk_triton.artifacts.recipes.trtexec import trtexec_has_option, trtexec_versions

__all__ = [
    "BUILDER_VERSION",
    "PLACEHOLDER",
    "Archive",
    "BuildRecipe",
    "CondaEnvironment",
    "DaliPipeline",
    "OnnxExport",
    "Parity",
    "S3File",
    "TensorRTPlan",
    "Tolerance",
    "WheelEnvironment",
    "artifact_key",
    "cache_directory",
    "ensemble_document",
    "platform_document",
    "recipes_of",
    "source_key",
    "sources_key",
    "trtexec_has_option",
    "trtexec_versions",
    "write_archive",
]

if not TYPE_CHECKING:  # to whom a misspelt name is an error
    __getattr__, __dir__ = lazy_names(__name__)
