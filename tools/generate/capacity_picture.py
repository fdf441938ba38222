"""Draws the five questions that choose a kind of endpoint: docs/images/capacity.svg.

The size and the time of a request are those of cdk_triton.sagemaker.limits. The alternative text has the same words.
"""

from __future__ import annotations

from dataclasses import dataclass

from tools.generate import Files, Generator
from tools.generate._shapes import arrow, box, svg, text

from cdk_triton.sagemaker.limits import MAX_INVOCATION_BYTES, MAX_INVOCATION_SECONDS


@dataclass(frozen=True)
class Kind:
    """A kind of endpoint: its name, and a note below it."""

    name: str
    note: str


@dataclass(frozen=True)
class Question:
    """A question, a note below it, and the kind of endpoint that a yes chooses."""

    words: str
    note: str
    yes: Kind


ASYNCHRONOUS = Kind("Asynchronous", "queue and S3; scales to zero")
MULTI_MODEL = Kind("Multi-model", "loads and unloads archives")
COMPONENTS = Kind("Inference components", "whole GPUs for each copy")
POOLS = Kind("Instance pools", "a plan for each GPU")
SINGLE = Kind("Single model", "a new instance is the only cold start")
QUESTIONS = (
    Question(
        f"Is a request over {MAX_INVOCATION_BYTES // 2**20} MiB, or slower than {MAX_INVOCATION_SECONDS} seconds?",
        "No other kind takes such requests.",
        ASYNCHRONOUS,
    ),
    Question("Can several ensembles share a GPU?", "Many of them, with few requests each.", MULTI_MODEL),
    Question(
        "Is it idle for hours, and may calls fail meanwhile?",
        "If they may wait instead: asynchronous, too.",
        COMPONENTS,
    ),
    Question("Do ensembles share an instance with several GPUs?", "Each with GPUs and scaling of its own.", COMPONENTS),
    Question("Could AWS run out of your GPU?", "And does another GPU serve the ensemble fast enough?", POOLS),
)
TOGETHER = "an asynchronous endpoint may have pools, too"
ASK_LEFT, ASK_WIDTH, KIND_LEFT, KIND_WIDTH, HEIGHT, TOP, STEP = 16, 440, 540, 250, 62, 16, 96


def picture() -> bytes:
    """Return the picture: the questions one below the other, and beside them the kinds that a yes chooses."""
    middle, parts = ASK_LEFT + ASK_WIDTH / 2, []
    for number, question in enumerate(QUESTIONS):
        top = TOP + number * STEP
        across = top + HEIGHT / 2
        parts += [
            box(ASK_LEFT, top, ASK_WIDTH, HEIGHT, f"{number + 1}. {question.words}", question.note),
            arrow(f"M{ASK_LEFT + ASK_WIDTH} {across:g} H{KIND_LEFT - 3}", "yes", (496, across - 7)),
            arrow(f"M{middle:g} {top + HEIGHT} V{top + STEP - 3}", "no", (middle + 16, top + HEIGHT + 20)),
        ]
    for kind in dict.fromkeys(question.yes for question in QUESTIONS):
        rows = [number for number, question in enumerate(QUESTIONS) if question.yes == kind]
        height = HEIGHT + (rows[-1] - rows[0]) * STEP
        parts.append(box(KIND_LEFT, TOP + rows[0] * STEP, KIND_WIDTH, height, kind.name, kind.note, kind="key"))
    bottom = TOP + len(QUESTIONS) * STEP
    parts.append(box(middle - 140, bottom, 280, HEIGHT, SINGLE.name, SINGLE.note, kind="key"))
    parts += _together()
    return svg("Which kind of endpoint, in five questions", words(), 832, bottom + HEIGHT + 16, parts)


def _together() -> list[str]:
    """The line between the two kinds that one endpoint may combine."""
    rows = {question.yes: TOP + number * STEP for number, question in enumerate(QUESTIONS)}
    right, first, second = KIND_LEFT + KIND_WIDTH, rows[ASYNCHRONOUS] + HEIGHT // 2, rows[POOLS] + HEIGHT // 2
    return [
        arrow(f"M{right} {first} H{right + 24} V{second} H{right + 3}", kind="flow back"),
        text(KIND_LEFT, rows[POOLS] + HEIGHT + 22, TOGETHER),
    ]


def words() -> str:
    """Return the alternative text: each question with its answer."""
    asked = " ".join(
        f"{number}. {question.words} {question.note} Yes: {question.yes.name.lower()}, {question.yes.note}."
        for number, question in enumerate(QUESTIONS, 1)
    )
    return (
        f"Five questions, one below the other. The first yes decides. {asked} "
        f"Five times no: {SINGLE.name.lower()}, {SINGLE.note}. {TOGETHER[0].upper()}{TOGETHER[1:]}."
    )


def _files() -> Files:
    return {"docs/images/capacity.svg": picture()}


GENERATOR = Generator(_files)
