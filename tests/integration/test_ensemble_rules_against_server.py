"""The real tritonserver as judge of CT301 to CT349: ensembles, their connections, and the models that they run.

What it cannot see is left out: models whose I/O a backend completes (the null backends complete nothing), the endpoint
in front of the server (CT340, CT341), and what goes wrong with a request only (CT316, CT337, CT342).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from judging.composed import BATCH, DECOUPLED, IN, OUT, RUN, Files, ensemble, python, step, tensor, write

if TYPE_CHECKING:
    from judging.server import Judge

TWO = IN + OUT + tensor("output", "SPARE")
JOIN = python(tensor("input", "A") + tensor("input", "B") + OUT, "join")
NAMED = tensor("input", "image") + tensor("output", "result")

REFUSED: Mapping[str, tuple[str, Files, str]] = {
    "step model exists": (
        "CT301",
        {**ensemble(), **python(name="modell")},
        "ensemble pipeline contains models that are not available or ambiguous: model",
    ),
    "no cycle between ensembles": (
        "CT302",
        ensemble(steps=step({"IN": "IN"}, {"OUT": "OUT"}, "pipeline")),
        "circular dependency between ensembles: pipeline -> ... -> pipeline -> pipeline",
    ),
    "no cycle between ensembles, of three": (
        "CT302",
        {
            **ensemble(steps=step({"IN": "IN"}, {"OUT": "OUT"}, "second")),
            **ensemble(steps=step({"IN": "IN"}, {"OUT": "OUT"}, "third"), name="second"),
            **ensemble(steps=step({"IN": "IN"}, {"OUT": "OUT"}, "pipeline"), name="third"),
        },
        "circular dependency between ensembles: pipeline -> ... -> third -> pipeline",
    ),
    "child loaded: required version": (
        "CT303",
        {**ensemble(steps=step({"IN": "IN"}, {"OUT": "OUT"}, version=2)), **python()},
        "ensemble 'pipeline' depends on 'model' whose required version 2 is not loaded",
    ),
    "ensemble block for ensemble platform": (
        "CT310",
        {"pipeline/config.pbtxt": f'platform: "ensemble"\n{IN}{OUT}', "pipeline/1/.gitkeep": ""},
        "ensemble scheduling must be set for ensemble pipeline whose platform is ensemble",
    ),
    "ensemble block for ensemble platform, and another scheduler": (
        "CT310",
        {"pipeline/config.pbtxt": f'platform: "ensemble" dynamic_batching {{ }}\n{IN}{OUT}', "pipeline/1/.gitkeep": ""},
        "ensemble scheduling must be set for ensemble pipeline whose platform is ensemble",
    ),
    "block only on ensemble": (
        "CT311",
        {**ensemble(), **python(), **python(f"{IN}{OUT}ensemble_scheduling {{ {RUN} }}", "pipeline")},
        "ensemble scheduling cannot be set for model 'pipeline' whose platform is not ensemble",
    ),
    "block only on ensemble, and no backend": (
        "CT311",
        {**python(), "pipeline/config.pbtxt": f"{IN}{OUT}ensemble_scheduling {{ {RUN} }}", "pipeline/1/.gitkeep": ""},
        "Could not determine backend for model 'pipeline' with no backend in model configuration",
    ),
    "block only on ensemble, and a platform that is none": (
        "CT311",
        {**python(), **ensemble(), "pipeline/config.pbtxt": f'platform: "x"\n{IN}{OUT}ensemble_scheduling {{ {RUN} }}'},
        "unexpected platform type 'x' for pipeline",
    ),
    "no instance_group": (
        "CT312",
        {**ensemble(f"instance_group {{ }}\n{IN}{OUT}"), **python()},
        "instance group should not be specified for ensemble 'pipeline'",
    ),
    "no optimization": (
        "CT312",
        {**ensemble(f"optimization {{ }}\n{IN}{OUT}"), **python()},
        "optimization should not be specified for ensemble 'pipeline'",
    ),
    "no warmup": (
        "CT312",
        {**ensemble(f'model_warmup {{ name: "x" batch_size: 1 }}\n{IN}{OUT}'), **python()},
        "model_warmup can not be specified for ensemble 'pipeline'",
    ),
    "has steps": ("CT313", ensemble(steps=""), "must specify 'step' for ensemble 'pipeline'"),
    "step.model_name": (
        "CT314",
        {**ensemble(steps=step({"IN": "IN"}, {"OUT": "OUT"}, "")), **python()},
        "must specify 'model_name' in step 0 of ensemble 'pipeline'",
    ),
    "step.input_map": (
        "CT314",
        {**ensemble(steps=step({}, {"OUT": "OUT"})), **python()},
        "must specify 'input_map' in step 0 of ensemble 'pipeline'",
    ),
    "step.output_map": (
        "CT314",
        {**ensemble(steps=step({"IN": "IN"}, {})), **python()},
        "must specify 'output_map' in step 0 of ensemble 'pipeline'",
    ),
    "one writer per tensor": (
        "CT315",
        {**ensemble(steps=RUN + RUN), **python()},
        "ensemble tensor 'OUT' can appear in an output map only once for ensemble 'pipeline' step 1",
    ),
    "one writer per tensor, in one step": (
        "CT315",
        {**ensemble(steps=step({"IN": "IN"}, {"OUT": "OUT", "SPARE": "OUT"})), **python(TWO)},
        "ensemble tensor 'OUT' can appear in an output map only once for ensemble 'pipeline' step 0",
    ),
    "ensemble input used": (
        "CT317",
        {**ensemble(tensor("input", "OTHER") + IN + OUT), **python()},
        "ensemble input 'OTHER' for ensemble pipeline' is not used",
    ),
    "ensemble input used, misspelt": (
        "CT317",
        {**ensemble(steps=step({"IN": "INN"}, {"OUT": "OUT"})), **python()},
        "ensemble input 'IN' for ensemble pipeline' is not used",
    ),
    "ensemble input used, the last of two entries counts": (
        "CT317",
        {**ensemble(steps=RUN.replace(" output_map", ' input_map { key: "IN" value: "INN" } output_map')), **python()},
        "ensemble input 'IN' for ensemble pipeline' is not used",
    ),
    "ensemble input used, and not only written": (
        "CT317",
        {
            **ensemble(IN + tensor("input", "SPARE") + OUT, step({"IN": "IN"}, {"OUT": "OUT", "SPARE": "SPARE"})),
            **python(TWO),
        },
        "ensemble tensor 'SPARE' is unused in ensemble 'pipeline'",
    ),
    "ensemble output exists": (
        "CT318",
        {**ensemble(IN + OUT + tensor("output", "OTHER")), **python()},
        "ensemble output 'OTHER' for ensemble pipeline' is not used",
    ),
    "ensemble output exists, and is read": (
        "CT318",
        {**ensemble(IN + tensor("output", "X") + OUT, step({"A": "IN", "B": "X"}, {"OUT": "OUT"}, "join")), **JOIN},
        "output 'X' for ensemble 'pipeline' is not written",
    ),
    "reachable data flow": (
        "CT319",
        {**ensemble(steps=step({"A": "IN", "B": "x"}, {"OUT": "OUT"}, "join")), **JOIN},
        "output 'OUT' for ensemble 'pipeline' is not written: at least one of its depending tensors, 'x', is not "
        "connected",
    ),
    "reachable data flow, misspelt": (
        "CT319",
        {**ensemble(steps=step({"IN": "IN"}, {"OUT": "ids"}) + step({"IN": "idz"}, {"OUT": "OUT"})), **python()},
        "output 'OUT' for ensemble 'pipeline' is not written: at least one of its depending tensors, 'idz', is not "
        "connected",
    ),
    "acyclic data flow": (
        "CT320",
        {**ensemble(steps=step({"A": "IN", "B": "OUT"}, {"OUT": "OUT"}, "join")), **JOIN},
        "output 'OUT' for ensemble 'pipeline' is not written",
    ),
    "acyclic data flow, beside the ways to the outputs": (
        "CT320",
        {**ensemble(steps=RUN + step({"IN": "a"}, {"OUT": "b"}) + step({"IN": "b"}, {"OUT": "a"})), **python()},
        "is unused in ensemble 'pipeline'",
    ),
    "no dangling mapped tensor": (
        "CT321",
        {**ensemble(steps=step({"IN": "IN"}, {"OUT": "OUT", "SPARE": "x"})), **python(TWO)},
        "ensemble tensor 'x' is unused in ensemble 'pipeline'",
    ),
    "no dangling mapped tensor, and no outputs": (
        "CT321",
        {**ensemble(IN), **python()},
        "ensemble tensor 'OUT' is unused in ensemble 'pipeline'",
    ),
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
    "one step": (set(), {**ensemble(), **python()}),
    "one tensor per model input: the last of two entries counts": (
        set(),
        {**ensemble(steps=RUN.replace(" input_map", ' input_map { key: "IN" value: "INN" } input_map')), **python()},
    ),
    "two names that are the ensemble's and the model's, crosswise": (
        set(),
        {
            **ensemble(
                tensor("input", "A") + tensor("input", "B") + OUT, step({"A": "B", "B": "A"}, {"OUT": "OUT"}, "join")
            ),
            **JOIN,
        },
    ),
    "an output that the ensemble does not need": (set(), {**ensemble(), **python(TWO)}),
    "an input that is an output too": (set(), {**ensemble(IN + OUT + tensor("output", "IN")), **python()}),
    "steps in any order": (
        set(),
        {**ensemble(steps=step({"IN": "t"}, {"OUT": "OUT"}) + step({"IN": "IN"}, {"OUT": "t"})), **python()},
    ),
    "an input that a step writes": (
        {"CT316"},
        {**ensemble(steps=step({"IN": "IN"}, {"OUT": "OUT", "SPARE": "IN"})), **python(TWO)},
    ),
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
def test_the_server_refuses_in_the_words_that_are_quoted(
    tmp_path: Path, judge: Judge, code: str, files: Files, words: str
) -> None:
    repository = write(tmp_path / "repository", files)
    findings = repository.check(default_model="pipeline")
    assert {finding.code for finding in findings if finding.severity == "error"} == {code}, findings
    assert any(words in finding.message for finding in findings), findings
    verdict = judge(repository.root, ["pipeline"])
    assert not verdict.loaded
    assert words in verdict.said


@pytest.mark.parametrize(("codes", "files"), LOADED.values(), ids=LOADED)
def test_the_server_loads_what_is_no_error(tmp_path: Path, judge: Judge, codes: set[str], files: Files) -> None:
    repository = write(tmp_path / "repository", files)
    findings = repository.check(default_model="pipeline")
    assert {str(finding.code) for finding in findings} == codes, findings
    assert all(finding.severity == "warning" for finding in findings)
    verdict = judge(repository.root, ["pipeline"])
    assert verdict.loaded, verdict.said


def test_the_server_crashes_where_a_circle_is_reached_from_outside(tmp_path: Path, judge: Judge) -> None:
    circle = {
        **ensemble(steps=step({"IN": "IN"}, {"OUT": "OUT"}, "second")),
        **ensemble(steps=step({"IN": "IN"}, {"OUT": "OUT"}, "third"), name="second"),
        **ensemble(steps=step({"IN": "IN"}, {"OUT": "OUT"}, "second"), name="third"),
    }
    repository = write(tmp_path / "repository", circle)
    (finding,) = repository.check(default_model="pipeline")
    assert finding.code == "CT302"
    assert "the server would crash" in finding.message
    verdict = judge(repository.root, ["pipeline"])
    assert not verdict.loaded
    assert "circular" not in verdict.said


@pytest.mark.parametrize(
    ("child", "words", "code"),
    [
        pytest.param(
            python(tensor("input", "IN", dims="0") + OUT),
            "ensemble 'pipeline' depends on 'model' which has no loaded version",
            "CT204",
            id="has no loaded version",
        ),
        pytest.param(
            {**ensemble(IN + OUT, step({"IN": "IN"}, {"OUTT": "OUT"}, "last"), "model"), **python(name="last")},
            "ensemble 'pipeline' depends on 'model' which is not valid",
            "CT334",
            id="is not valid",
        ),
    ],
)
def test_a_child_that_does_not_load_is_reported_itself(
    tmp_path: Path, judge: Judge, child: Files, words: str, code: str
) -> None:
    repository = write(tmp_path / "repository", {**ensemble(), **child})
    assert [finding.code for finding in repository.check(default_model="pipeline")] == [code]
    assert words in judge(repository.root, ["pipeline"]).said
