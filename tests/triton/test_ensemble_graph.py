"""The data flow of an ensemble."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdk_triton.triton import EnsembleGraph, EnsembleTensor, parse_model_config

if TYPE_CHECKING:
    from sample_repositories import Write


def test_steps_and_tensors(write: Write) -> None:
    model = write().model("ensemble")
    assert model is not None
    preprocess, bert = model.graph.steps
    assert (preprocess.index, preprocess.model_name, preprocess.model_version) == (0, "preprocess", -1)
    assert (dict(bert.input_map), dict(bert.output_map)) == ({"token_ids": "ids"}, {"embedding": "finaloutput"})
    assert model.graph.model_names == ("preprocess", "bert")
    assert model.graph.tensors == {
        "INPUT0": EnsembleTensor("INPUT0", writers=(), readers=(preprocess,), is_input=True, is_output=False),
        "finaloutput": EnsembleTensor("finaloutput", writers=(bert,), readers=(), is_input=False, is_output=True),
        "ids": EnsembleTensor("ids", writers=(preprocess,), readers=(bert,), is_input=False, is_output=False),
    }


def test_any_other_model_has_an_empty_graph(write: Write) -> None:
    model = write().model("bert")
    assert model is not None
    assert model.graph == EnsembleGraph((), {})


def test_what_is_wrong_is_shown_as_it_is() -> None:
    graph = EnsembleGraph.from_config(
        parse_model_config("""
            ensemble_scheduling {
              step { model_name: "a" output_map { key: "x" value: "t" } output_map { key: "y" value: "t" } }
              step { model_name: "a" output_map { key: "x" value: "t" } input_map { key: "i" value: "nowhere" } }
            }
        """)
    )
    assert graph.model_names == ("a",)
    assert [step.index for step in graph.tensors["t"].writers] == [0, 1]
    assert graph.tensors["nowhere"].writers == ()
    assert graph.steps[0].model_version == 0  # what the server takes an omitted version for


@pytest.mark.slow
def test_a_graph_of_many_steps_is_read() -> None:
    count = 20_000
    steps = "".join(
        f'step {{ model_name: "a" input_map {{ key: "i" value: "{n}" }} output_map {{ key: "o" value: "{n + 1}" }} }}'
        for n in range(count)
    )
    graph = EnsembleGraph.from_config(parse_model_config(f"ensemble_scheduling {{ {steps} }}"))
    assert len(graph.tensors) == count + 1
    assert [step.index for step in graph.tensors["7"].writers] == [6]
    assert [step.index for step in graph.tensors["7"].readers] == [7]
