"""The rule CT510: names of models that the server takes for signs of a lack of memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sample_repositories.sound import PYTHON_MODEL

if TYPE_CHECKING:
    from golden_messages import Messages
    from sample_repositories import Write


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("ROOMS", id="a part of a word"),
        pytest.param("MemoryErrors", id="an exception"),
    ],
)
def test_names_that_look_like_a_lack_of_memory(messages: Messages, write: Write, name: str) -> None:
    repository = write({f"{name}/config.pbtxt": 'backend: "python"', f"{name}/1/model.py": PYTHON_MODEL}, base={})
    assert messages.of(repository.check("multi")) == [("CT510", name, "")]
    assert repository.check("single") == ()
