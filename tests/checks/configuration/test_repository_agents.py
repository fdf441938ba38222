"""The rule CT246: repository agents."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sample_repositories.sound import PYTHON_MODEL

if TYPE_CHECKING:
    from golden_messages import Messages
    from sample_repositories import Write

AGENTS = "model_repository_agents"


@pytest.mark.parametrize(
    ("agents", "fields"),
    [
        pytest.param("", [AGENTS], id="none"),
        pytest.param("agents { }", [f"{AGENTS}.agents[0].name"], id="nameless"),
        pytest.param('agents { name: "checksum" } agents { }', [f"{AGENTS}.agents[1].name"], id="the second nameless"),
        pytest.param('agents { name: "checksum" }', [], id="named"),
    ],
)
def test_agents(messages: Messages, write: Write, agents: str, fields: list[str]) -> None:
    config = f'backend: "python" {AGENTS} {{ {agents} }}'
    repository = write({"model/config.pbtxt": config, "model/1/model.py": PYTHON_MODEL}, base={})
    expected = [("CT246", "model/config.pbtxt", field) for field in fields]
    assert messages.of(each for each in repository.check() if each.code == "CT246") == expected
