"""The real tritonserver as judge of CT330 to CT349: what flows from model to model within an ensemble.

What it cannot see is left out: models whose I/O a backend completes (the null backends complete nothing), the endpoint
in front of the server (CT340, CT341), and what goes wrong with a request only (CT337, CT342), or with a batch (CT344).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from judging.composed import BATCH, DECOUPLED, IN, OUT, RUN, Files, both, ensemble, python, step, tensor

if TYPE_CHECKING:
    from judging.server import Judge

TWO = IN + OUT + tensor("output", "SPARE")
JOIN = python(tensor("input", "A") + tensor("input", "B") + OUT, "join")
NAMED = tensor("input", "image") + tensor("output", "result")


LABELLED = tensor("output", "OUT", more='label_filename: "labels.txt"')

REFUSED: Mapping[str, tuple[str, Files, str]] = {
    "same data type": (
        "CT330",
        {**ensemble(tensor("input", "IN", "INT32") + OUT), **python()},
        "in ensemble pipeline, ensemble tensor IN: inconsistent data type: TYPE_INT32 is inferred from model pipeline "
        "while TYPE_FP32 is inferred from model model",
    ),
    "same data type, between steps": (
        "CT330",
        {
            **ensemble(steps=step({"IN": "IN"}, {"OUT": "t"}) + step({"IN": "t"}, {"OUT": "OUT"}, "last")),
            **python(),
            **python(tensor("input", "IN", "FP16") + OUT, "last"),
        },
        "in ensemble pipeline, ensemble tensor t: inconsistent data type: TYPE_FP32 is inferred from model model while "
        "TYPE_FP16 is inferred from model last",
    ),
    "same data type, of a nested ensemble": (
        "CT330",
        {
            **ensemble(tensor("input", "IN", "INT32") + OUT, step({"IN": "IN"}, {"OUT": "OUT"}, "inner")),
            **ensemble(name="inner"),
            **python(),
        },
        "in ensemble pipeline, ensemble tensor IN: inconsistent data type: TYPE_INT32 is inferred from model pipeline "
        "while TYPE_FP32 is inferred from model inner",
    ),
    "same shape": (
        "CT331",
        {**ensemble(), **python(tensor("input", "IN", dims="5") + OUT)},
        "in ensemble pipeline, ensemble tensor IN: inconsistent shape: [4] is inferred from model pipeline while [5] "
        "is inferred from model model",
    ),
    "same shape, with the batch dimension": (
        "CT331",
        {**ensemble(BATCH + IN + OUT), **python(BATCH + IN + tensor("output", "OUT", dims="-1, -1"))},
        "in ensemble pipeline, ensemble tensor OUT: inconsistent shape: [-1,4] is inferred from model pipeline while "
        "[-1,-1,-1] is inferred from model model",
    ),
    "same shape, without batches the model has one dimension less": (
        "CT331",
        {**ensemble(tensor("input", "IN", dims="-1, 4") + OUT), **python()},
        "in ensemble pipeline, ensemble tensor IN: inconsistent shape: [-1,4] is inferred from model pipeline while "
        "[4] is inferred from model model",
    ),
    "same shape, after the ensemble's reshape": (
        "CT331",
        {**ensemble(tensor("input", "IN", more="reshape { shape: [ 2, 2 ] }") + OUT), **python()},
        "in ensemble pipeline, ensemble tensor IN: inconsistent shape: [2,2] is inferred from model pipeline while [4] "
        "is inferred from model model",
    ),
    "mapped input exists": (
        "CT332",
        {**ensemble(steps=step({"INN": "IN"}, {"OUT": "OUT"})), **python()},
        "in ensemble pipeline, ensemble tensor IN is mapping to non-existing input INN in model model",
    ),
    "every non-optional input mapped": (
        "CT333",
        {**ensemble(), **python(IN + tensor("input", "MASK") + OUT)},
        "in ensemble pipeline, input MASK in model model is not mapped to any ensemble tensors",
    ),
    "mapped output exists": (
        "CT334",
        {**ensemble(steps=step({"IN": "IN"}, {"OUTT": "OUT"})), **python()},
        "in ensemble pipeline, ensemble tensor OUT is mapped from non-existing output OUTT in model model",
    ),
    "outputs not merged": (
        "CT335",
        {**ensemble(), **python(IN + OUT + OUT)},
        "in ensemble pipeline, multiple outputs in model model are mapped to the same ensemble tensor OUT",
    ),
    "outputs not merged, of two types": (
        "CT335",
        {**ensemble(), **python(IN + OUT + tensor("output", "OUT", "INT32"))},
        "in ensemble pipeline, ensemble tensor OUT: inconsistent data type",
    ),
    "outputs not merged, with labels": (
        "CT219",
        {**ensemble(), **python(IN + LABELLED + LABELLED), "model/labels.txt": "a\n"},
        "multiple label files for 'OUT'",
    ),
    "outputs not merged, with labels, of two types": (
        "CT219",
        {**ensemble(), **python(IN + LABELLED + LABELLED.replace("FP32", "INT32")), "model/labels.txt": "a\n"},
        "multiple label files for 'OUT'",
    ),
    "batch size": (
        "CT336",
        {**ensemble(BATCH + IN + OUT), **python("max_batch_size: 4\n" + IN + OUT)},
        "ensemble pipeline allows maximum batch size 8, but it contains model model which only allows maximum batch "
        "size to be 4",
    ),
    "decoupled mix": (
        "CT338",
        {
            **ensemble(steps=step({"IN": "IN"}, {"OUT": "t"}) + step({"A": "t", "B": "IN"}, {"OUT": "OUT"}, "join")),
            **python(DECOUPLED + IN + OUT),
            **JOIN,
        },
        "receives inputs originated from different decoupled models",
    ),
    "decoupled mix, in the response": (
        "CT338",
        {
            **ensemble(IN + OUT + tensor("output", "O2"), RUN + step({"IN": "IN"}, {"OUT": "O2"}, "other")),
            **python(DECOUPLED + IN + OUT),
            **python(name="other"),
        },
        "receives inputs originated from different decoupled models",
    ),
    "decoupled mix, of a nested ensemble": (
        "CT338",
        {
            **ensemble(
                steps=step({"IN": "IN"}, {"OUT": "t"}, "inner") + step({"A": "t", "B": "IN"}, {"OUT": "OUT"}, "join")
            ),
            **ensemble(name="inner"),
            **python(DECOUPLED + IN + OUT),
            **JOIN,
        },
        "receives inputs originated from different decoupled models",
    ),
    "key and value exchanged": (
        "CT343",
        {**ensemble(NAMED, step({"image": "IN"}, {"result": "OUT"})), **python()},
        "ensemble input 'image' for ensemble pipeline' is not used",
    ),
    "key and value exchanged, in every step": (
        "CT343",
        {
            **ensemble(NAMED, step({"image": "IN"}, {"t": "OUT"}) + step({"t": "IN"}, {"result": "OUT"}, "last")),
            **python(),
            **python(name="last"),
        },
        "ensemble tensor 'OUT' can appear in an output map only once for ensemble 'pipeline' step 1",
    ),
    "key and value exchanged, of the outputs": (
        "CT343",
        {**ensemble(NAMED, step({"IN": "image"}, {"result": "OUT"})), **python()},
        "ensemble output 'result' for ensemble pipeline' is not used",
    ),
    "key and value exchanged, between the steps": (
        "CT343",
        {
            **ensemble(NAMED, step({"IN": "image"}, {"t": "OUT"}) + step({"IN": "t"}, {"OUT": "result"}, "last")),
            **python(),
            **python(name="last"),
        },
        "output 'result' for ensemble 'pipeline' is not written",
    ),
    "key and value exchanged, beside the ways to the outputs": (
        "CT343",
        {
            **ensemble(
                NAMED,
                step({"IN": "image"}, {"OUT": "result", "SPARE": "t"})
                + step({"t": "A"}, {"t2": "OUT"}, "last")
                + step({"IN": "t2"}, {"OUT": "t3"}, "sink"),
            ),
            **python(TWO),
            **python(tensor("input", "A") + OUT, name="last"),
            **python(name="sink"),
        },
        "is unused in ensemble 'pipeline'",
    ),
}

LOADED: Mapping[str, tuple[set[str], Files]] = {
    "any size": (set(), {**ensemble(), **python(tensor("input", "IN", dims="-1") + OUT)}),
    "the batch as a dimension of the model": (
        set(),
        {
            **ensemble(BATCH + IN + OUT),
            **python(tensor("input", "IN", dims="-1, 4") + tensor("output", "OUT", dims="-1, 4")),
        },
    ),
    "the batch as a dimension of the ensemble": (
        set(),
        {
            **ensemble(tensor("input", "IN", dims="-1, 4") + tensor("output", "OUT", dims="-1, 4")),
            **python(BATCH + IN + OUT),
        },
    ),
    "single items": ({"CT337"}, {**ensemble(BATCH + IN + OUT), **python()}),
    "ragged batches of the ensemble": (
        {"CT344"},
        {
            **ensemble(BATCH + tensor("input", "IN", dims="-1", more="allow_ragged_batch: true") + OUT),
            **python(BATCH + tensor("input", "IN", dims="-1") + OUT + "dynamic_batching {}\n"),
        },
    ),
    "the ensemble's reshape, and the model's dims": (
        set(),
        {
            **ensemble(tensor("input", "IN", more="reshape { shape: [ 2, 2 ] }") + OUT),
            **python(tensor("input", "IN", dims="2, 2", more="reshape { shape: 4 }") + OUT),
        },
    ),
    "larger batches than the ensemble needs": (
        set(),
        {**ensemble("max_batch_size: 4\n" + IN + OUT), **python(BATCH + IN + OUT)},
    ),
    "an optional input that is not mapped": (
        set(),
        {**ensemble(), **python(IN + tensor("input", "MASK", more="optional: true") + OUT)},
    ),
    "an optional input for one that is not": (
        {"CT342"},
        {**ensemble(tensor("input", "IN", more="optional: true") + OUT), **python()},
    ),
    "nested": (
        set(),
        {**ensemble(steps=step({"IN": "IN"}, {"OUT": "OUT"}, "inner")), **ensemble(name="inner"), **python()},
    ),
    "decoupled steps in a row": (
        {"CT341"},
        {
            **ensemble(steps=step({"IN": "IN"}, {"OUT": "t"}) + step({"IN": "t"}, {"OUT": "OUT"})),
            **python(DECOUPLED + IN + OUT),
        },
    ),
    "tensors of one decoupled step": (
        {"CT341"},
        {
            **ensemble(
                steps=step({"IN": "IN"}, {"OUT": "t", "SPARE": "u"})
                + step({"A": "t", "B": "u"}, {"OUT": "OUT"}, "join")
            ),
            **python(DECOUPLED + TWO),
            **JOIN,
        },
    ),
}


@pytest.mark.parametrize(("code", "files", "words"), REFUSED.values(), ids=REFUSED)
def test_the_server_rejects_in_the_words_that_are_quoted(
    tmp_path: Path, judge: Judge, code: str, files: Files, words: str
) -> None:
    findings, verdict = both(tmp_path, judge, files)
    assert {finding.code for finding in findings if finding.severity == "error"} == {code}, findings
    assert any(words in finding.message for finding in findings), findings
    assert not verdict.loaded
    assert words in verdict.said


@pytest.mark.parametrize(("codes", "files"), LOADED.values(), ids=LOADED)
def test_the_server_loads_what_is_no_error(tmp_path: Path, judge: Judge, codes: set[str], files: Files) -> None:
    findings, verdict = both(tmp_path, judge, files)
    assert {finding.code for finding in findings} == codes, findings
    assert all(finding.severity == "warning" for finding in findings)
    assert verdict.loaded, verdict.said
