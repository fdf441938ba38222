"""Draws a terminal with the report of `make demo`: docs/images/demo.svg, from a recorded run.

`python -m tools.record_pictures demo` records the run.
"""

from __future__ import annotations

from tools.generate import ROOT, Files, Generator
from tools.generate._terminal import terminal

RECORDED = ROOT / "tools" / "generate" / "recorded" / "demo.txt"
COLUMNS = 112
WORDS = (
    "The report of make demo: for each ensemble and form of the request the target model, the time of the first "
    "call and the median of 20 calls; two sentences with a cosine of 0.7553, as published; the five classes of a "
    "photograph of a cat; the real parts, and the stand-ins for AWS, trtexec, the GPU and DALI."
)


def _files() -> Files:
    return {"docs/images/demo.svg": terminal(RECORDED.read_text(encoding="utf-8"), "make demo", WORDS, COLUMNS)}


GENERATOR = Generator(_files)
