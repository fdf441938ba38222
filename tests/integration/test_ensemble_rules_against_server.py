"""The real tritonserver as judge of CT301 to CT321: what an ensemble runs, and how its tensors are connected.

What goes wrong with a request only (CT316) is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from judging.composed import IN, OUT, RUN, Files, both, ensemble, python, step, tensor, write

if TYPE_CHECKING:
    from golden_messages import Messages
    from judging.server import Judge

TWO = IN + OUT + tensor("output", "SPARE")
JOIN = python(tensor("input", "A") + tensor("input", "B") + OUT, "join")


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
}

LOADED: Mapping[str, tuple[set[str], Files]] = {
    "one step": (set(), {**ensemble(), **python()}),
    "a step that spells a path": (set(), {**ensemble(steps=RUN.replace('"model"', '"./model"')), **python()}),
    "one tensor per model input: the last of two entries counts": (
        {"CT107"},
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


def test_the_server_crashes_where_a_circle_is_reached_from_outside(
    messages: Messages, tmp_path: Path, judge: Judge
) -> None:
    circle = {
        **ensemble(steps=step({"IN": "IN"}, {"OUT": "OUT"}, "second")),
        **ensemble(steps=step({"IN": "IN"}, {"OUT": "OUT"}, "third"), name="second"),
        **ensemble(steps=step({"IN": "IN"}, {"OUT": "OUT"}, "second"), name="third"),
    }
    repository = write(tmp_path / "repository", circle)
    (finding,) = repository.check(default_model="pipeline")
    assert finding.code == "CT302"
    messages.of([finding])
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
