"""The rule CT168: whether a Python model can say that it is ready."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdk_triton.sagemaker import ServingPlatform

if TYPE_CHECKING:
    from cdk_triton.triton.findings import Finding
    from golden_messages import Messages
    from sample_repositories import Write

IMAGE = f"example.com/triton@sha256:{'0' * 64}"


def found(write: Write, method: str, release: str) -> list[Finding]:
    source = f"class TritonPythonModel:\n    {method}\n\n    def execute(self, requests):\n        return []\n"
    platform = ServingPlatform(release=release, instance_type="ml.g5.xlarge", image=IMAGE)
    files = {"model/config.pbtxt": 'backend: "python"', "model/1/model.py": source}
    return [each for each in write(files, base={}).check(platform=platform) if each.code == "CT168"]


@pytest.mark.parametrize("release", ["26.03", "26.04"])
@pytest.mark.parametrize(
    "method",
    [
        pytest.param("def is_ready(self, timeout): return True", id="an argument"),
        pytest.param("def is_ready(): return True", id="no self"),
        pytest.param("def is_ready(self, *, timeout): return True", id="an argument by name"),
        pytest.param("async def is_ready(self, timeout): return True", id="a coroutine with an argument"),
        pytest.param("def is_ready(self): self.ask()", id="nothing"),
        pytest.param("def is_ready(self): return 1", id="a number"),
        pytest.param("def is_ready(self): yield True", id="a generator"),
        pytest.param("is_ready = True", id="a value"),
    ],
)
def test_a_model_that_is_never_ready(messages: Messages, write: Write, method: str, release: str) -> None:
    assert messages.of(found(write, method, release)) == [("CT168", "model/1/model.py", "")]


@pytest.mark.parametrize(
    "method",
    [
        pytest.param("def is_ready(self): return True", id="true"),
        pytest.param("def is_ready(self): return False", id="false"),
        pytest.param("def is_ready(self, timeout=1, *more, **others): return self.ask()", id="defaults"),
        pytest.param("async def is_ready(self): return True", id="a coroutine"),
        pytest.param("@staticmethod\n    def is_ready(): return True", id="static"),
        pytest.param("@remote\n    def is_ready(self, timeout): return True", id="an unknown decorator"),
        pytest.param("def is_ready(self):\n        if self.x: return True", id="sometimes nothing"),
        pytest.param("def ready(self): pass", id="another name"),
    ],
)
def test_a_model_that_may_be_ready(write: Write, method: str) -> None:
    assert found(write, method, "26.04") == []


def test_older_servers_do_not_ask(write: Write) -> None:
    assert found(write, "def is_ready(self): pass", "26.02") == []
