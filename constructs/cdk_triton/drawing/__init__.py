"""Draws the data flow of a repository with its findings: as values, as text, and in Mermaid.

The constructs and the command use it. It is above `checks`, because a picture shows findings and completes
configurations as the rules do.
"""

from __future__ import annotations

from cdk_triton.drawing.diagram import Arrow, Box, Diagram, diagrams
from cdk_triton.drawing.mermaid import as_mermaid
from cdk_triton.drawing.text import as_text

__all__ = ["Arrow", "Box", "Diagram", "as_mermaid", "as_text", "diagrams"]
