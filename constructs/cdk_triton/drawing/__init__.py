"""The data flow of a repository as a picture, with its findings: values, text, and Mermaid.

It is here because a picture shows findings, and completes configurations as the rules do. The constructs and the
command draw with it. No module here contains a rule.
"""

from __future__ import annotations

from cdk_triton.drawing.diagram import Arrow, Box, Diagram, diagrams
from cdk_triton.drawing.mermaid import as_mermaid
from cdk_triton.drawing.text import as_text

__all__ = ["Arrow", "Box", "Diagram", "as_mermaid", "as_text", "diagrams"]
