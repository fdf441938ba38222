"""Triton's own QA configurations, made again: what each is about, in this project's words, and what the server says.

The cases are those of `qa/L0_model_config` in triton-inference-server/server at e1db8a6: `noautofill_platform` (58),
and the ensembles of `autofill_noplatform` (32) and of its successes (4). Nothing is copied: names and texts are this
project's. The model that is asked for is called `subject`.
"""

from __future__ import annotations

from collections.abc import Mapping

from judging.qa_case import Case
from judging.qa_ensembles import of_ensembles
from judging.qa_models import of_models

__all__ = ["CASES", "WITHOUT_GPU", "Case"]

CASES: Mapping[str, Case] = dict([*of_models(), *of_ensembles()])

WITHOUT_GPU = ("negative_gpu",)
"""A server that sees no GPU says another thing of its first instance group, and loads none of it either."""
