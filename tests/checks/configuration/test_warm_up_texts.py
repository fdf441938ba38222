"""The rule CT249: the elements in a warm-up's file of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdk_triton.sagemaker import ServingPlatform
from sample_repositories.sound import PYTHON_MODEL

if TYPE_CHECKING:
    from golden_messages import Messages
    from sample_repositories import Write

FOUND = [("CT249", "model/warmup/f", "")]


def element(text: str) -> bytes:
    return len(text).to_bytes(4, "little") + text.encode()


def files(content: bytes, dims: str) -> dict[str, str | bytes]:
    value = f'data_type: TYPE_STRING dims: [ {dims} ] input_data_file: "f"'
    config = f"""
        backend: "python"
        input {{ name: "IN" data_type: TYPE_STRING dims: [ {dims} ] }}
        model_warmup {{ name: "w" batch_size: 1 inputs {{ key: "IN" value {{ {value} }} }} }}
    """
    return {"model/config.pbtxt": config, "model/1/model.py": PYTHON_MODEL, "model/warmup/f": content}


@pytest.mark.parametrize(
    ("content", "dims", "expected"),
    [
        pytest.param(element("a") + element(""), "2", [], id="as many"),
        pytest.param(element("a") * 6, "2, 3", [], id="as many in two dimensions"),
        pytest.param(b"", "1", FOUND, id="empty"),
        pytest.param(element("a"), "2", FOUND, id="fewer"),
        pytest.param(element("a") * 3, "2", FOUND, id="more"),
        pytest.param(element("a") + b"bc", "2", FOUND, id="half a length"),
        pytest.param(b"a plain text", "1", FOUND, id="one element that is cut off"),
        pytest.param(element("a") + element("b")[:-1], "2", FOUND, id="the last element is cut off"),
        pytest.param(b"\0" * 500_000, "125000", [], id="more than are counted"),
        pytest.param(b"\0" * 500_000, "99", FOUND, id="more than are counted, and than wanted"),
    ],
)
def test_elements(messages: Messages, write: Write, content: bytes, dims: str, expected: object) -> None:
    repository = write(files(content, dims), base={})
    assert messages.of(each for each in repository.check() if each.code == "CT249") == expected


def test_a_backend_that_may_not_look(write: Write) -> None:
    content = files(b"a plain text", "1")
    content["model/config.pbtxt"] = str(content["model/config.pbtxt"]).replace("python", "mine")
    assert "CT249" not in {each.code for each in write(content, base={}).check()}


def test_a_server_that_does_not_count(write: Write) -> None:
    older = ServingPlatform(release="24.05", instance_type="ml.g5.xlarge")
    assert "CT249" not in {each.code for each in write(files(b"", "1"), base={}).check(platform=older)}
