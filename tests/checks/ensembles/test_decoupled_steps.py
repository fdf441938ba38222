"""The rules CT338, CT340 and CT341: ensembles with decoupled models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import pytest

from cdk_triton.triton.environment import ContainerEnvironment
from sample_repositories import platform_with
from sample_repositories.one_step import IN, OUT, RUN, ensemble, python, step, tensor

if TYPE_CHECKING:
    from cdk_triton.triton import Finding, ModelRepository
    from golden_messages import Messages, Place
    from sample_repositories import Change, Write


BASE: dict[str, str] = {}


def said_of(repository: ModelRepository) -> list[Finding]:
    """The findings, as one reads them."""
    return list(repository.check(default_model="pipeline"))


@pytest.mark.parametrize(
    ("change", "findings"),
    [
        pytest.param(
            ensemble(
                steps=step("model", {"IN": "IN"}, {"OUT": "t"}) + step("join", {"A": "t", "B": "IN"}, {"OUT": "OUT"})
            )
            | python("model_transaction_policy { decoupled: true }" + IN + OUT)
            | python(tensor("input", "A") + tensor("input", "B") + OUT, "join"),
            [("CT338", "pipeline/config.pbtxt", 'ensemble_scheduling.step[1].input_map["B"]')],
            id="CT338 with an input of the ensemble",
        ),
        pytest.param(
            ensemble(
                steps=step("model", {"IN": "IN"}, {"OUT": "t"})
                + step("model", {"IN": "IN"}, {"OUT": "u"})
                + step("join", {"A": "t", "B": "u"}, {"OUT": "v"})
                + step("join", {"A": "v", "B": "u"}, {"OUT": "OUT"})
            )
            | python("model_transaction_policy { decoupled: true }" + IN + OUT)
            | python(tensor("input", "A") + tensor("input", "B") + OUT, "join"),
            [("CT338", "pipeline/config.pbtxt", 'ensemble_scheduling.step[2].input_map["B"]')],
            id="CT338 of two decoupled steps, and nothing of what follows",
        ),
        pytest.param(
            ensemble(IN + OUT + tensor("output", "OUT2"), RUN + step("other", {"IN": "IN"}, {"OUT": "OUT2"}))
            | python("model_transaction_policy { decoupled: true }" + IN + OUT)
            | python(name="other"),
            [("CT338", "pipeline/config.pbtxt", "output[1]")],
            id="CT338 in the response",
        ),
        pytest.param(
            ensemble(
                steps=step("inner", {"IN": "IN"}, {"OUT": "t"}) + step("join", {"A": "t", "B": "IN"}, {"OUT": "OUT"})
            )
            | ensemble(name="inner")
            | python("model_transaction_policy { decoupled: true }" + IN + OUT)
            | python(tensor("input", "A") + tensor("input", "B") + OUT, "join"),
            [("CT338", "pipeline/config.pbtxt", 'ensemble_scheduling.step[1].input_map["B"]')],
            id="CT338 of a nested ensemble",
        ),
        pytest.param(
            ensemble(steps=step("model", {"IN": "IN"}, {"OUT": "t"}) + step("model", {"IN": "t"}, {"OUT": "OUT"}))
            | python("model_transaction_policy { decoupled: true }" + IN + OUT),
            [("CT341", "pipeline/config.pbtxt", "ensemble_scheduling.step[0].model_name")],
            id="CT341 one after the other",
        ),
        pytest.param(
            ensemble("model_transaction_policy { decoupled: true }" + IN + OUT) | python(),
            [],
            id="what an ensemble says of itself does not count",
        ),
    ],
)
def test_what_is_found(messages: Messages, write: Write, change: Mapping[str, Change], findings: list[Place]) -> None:
    assert messages.of(said_of(write(change, base=BASE))) == findings


DECOUPLED = ensemble() | python("model_transaction_policy { decoupled: true }" + IN + OUT)


def test_a_multi_model_endpoint_serves_no_decoupled_ensemble(messages: Messages, write: Write) -> None:
    assert messages.of(write(DECOUPLED, base=BASE).check("multi")) == [
        ("CT340", "pipeline/config.pbtxt", "ensemble_scheduling.step[0].model_name")
    ]


@pytest.mark.parametrize(
    ("inference_type", "codes"), [(None, ["CT340"]), ("infer", ["CT340"]), ("generate_stream", [])]
)
def test_a_container_that_is_known_may_stream(
    write: Write, inference_type: Literal["infer", "generate_stream"] | None, codes: list[str]
) -> None:
    environment = ContainerEnvironment(inference_type=inference_type)
    findings = write(DECOUPLED, base=BASE).check(default_model="pipeline", environment=environment)
    assert [finding.code for finding in findings] == codes


@pytest.mark.parametrize(
    ("release", "codes"), [pytest.param("25.02", {"CT340"}, id="not read"), pytest.param("25.03", set(), id="read")]
)
def test_an_inference_type_counts_only_where_it_is_read(write: Write, release: str, codes: set[str]) -> None:
    environment = ContainerEnvironment(inference_type="generate_stream")
    repository, platform = write(DECOUPLED, base=BASE), platform_with(release)
    findings = repository.check(platform=platform, default_model="pipeline", environment=environment)
    assert {finding.code for finding in findings} & {"CT340", "CT341"} == codes
    unknown = repository.check(platform=platform, default_model="pipeline")
    assert {finding.code for finding in unknown} & {"CT340", "CT341"} == (codes or {"CT341"})
