"""Draws a build and a second deployment that attaches to it: docs/images/build_sequence.svg.

Each operation is checked against the calls that the tests recorded of the handler (tests/handlers/calls.json).
"""

from __future__ import annotations

import json

from tools.generate import ROOT, Files, GenerateError, Generator
from tools.generate._shapes import arrow, box, svg, text

CALLS = ROOT / "tests" / "handlers" / "calls.json"
LINES = ("Deployment A", "Store's handler", "Store's bucket", "CodeBuild or Processing", "Deployment B")
STEPS: tuple[tuple[int, int, str, str], ...] = (
    (0, 1, "needs the key", ""),
    (1, 2, "takes the lock of the key, if it is free", "PutObject"),
    (1, 2, "brings the inputs, writes the build plan", "UploadPartCopy"),
    (1, 2, "records that it will start the job", "PutObject"),
    (1, 3, "starts one job, named after the build", "StartBuild"),
    (4, 1, "needs the same key", ""),
    (1, 2, "finds the lock of a running build", "GetObject"),
    (1, 4, "not yet: B waits and polls every 30 seconds, as A does", ""),
    (3, 2, "writes archive and report", ""),
    (1, 3, "at a poll: the job has ended", "BatchGetBuilds"),
    (1, 2, "verifies and copies the archive", "CompleteMultipartUpload"),
    (1, 2, "writes the manifest: the commit", "PutObject"),
    (1, 0, "done", ""),
    (1, 4, "done: the same archive", ""),
)
WORDS = (
    "Deployment A needs an archive. The store's handler locks its key, brings the inputs, and starts one job. "
    "Deployment B needs the same archive: the handler finds the lock, so B waits for A's build. The job writes the "
    "archive. At the next poll the handler copies and commits it, and both deployments are done."
)
LEFT, STEP_X, TOP, STEP_Y = 116, 262, 96, 44


def picture() -> bytes:
    """Return the picture.

    Raises:
        GenerateError: the handler's recorded calls lack an operation of the picture.
    """
    recorded = {call["operation"] for call in json.loads(CALLS.read_text(encoding="utf-8"))}
    unknown = {operation for *_, operation in STEPS if operation} - recorded
    if unknown:
        raise GenerateError(f"the picture has {sorted(unknown)}, which {CALLS} does not have")
    bottom = TOP + len(STEPS) * STEP_Y
    parts = []
    for number, name in enumerate(LINES):
        middle = LEFT + number * STEP_X
        parts.append(f'  <path class="line" d="M{middle} 52 V{bottom}"/>\n')
        parts.append(box(middle - 100, 16, 200, 36, name, kind="key" if number == 1 else "box"))
    for number, (source, target, words, operation) in enumerate(STEPS):
        y = TOP + number * STEP_Y
        start, end = LEFT + source * STEP_X, LEFT + target * STEP_X
        parts.append(arrow(f"M{start} {y} H{end - 3 if end > start else end + 3}"))
        label = f"{words} ({operation})" if operation else words
        for line, part in enumerate(reversed(_lines(label, abs(target - source)))):
            parts.append(_on_white((start + end) / 2, y - 6 - 13 * line, part))
    return svg("A build, and a deployment that attaches to it", WORDS, 2 * LEFT + 4 * STEP_X, bottom + 8, parts)


def _lines(label: str, columns: int) -> list[str]:
    """A label in lines that fit between two columns, or over several."""
    lines = [""]
    for word in label.split():
        if len(lines[-1]) + len(word) > 34 * columns:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _on_white(middle: float, base: float, words: str) -> str:
    """A label that covers the line below it."""
    width = 6.4 * len(words) + 6
    cover = f'  <rect x="{middle - width / 2:g}" y="{base - 10:g}" width="{width:g}" height="13" fill="#ffffff"/>\n'
    return cover + text(middle, base, words, "note")


def _files() -> Files:
    return {"docs/images/build_sequence.svg": picture()}


GENERATOR = Generator(_files)
