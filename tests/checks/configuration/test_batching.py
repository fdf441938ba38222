"""The rules CT230 to CT239: how a model batches and queues its requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sample_repositories.sound import PYTHON_MODEL

if TYPE_CHECKING:
    from cdk_triton.triton import Finding
    from golden_messages import Messages, Place
    from sample_repositories import Write


def found(write: Write, config: str) -> list[Finding]:
    """What the rules CT230 to CT239 find in a repository with one model."""
    repository = write({"model/config.pbtxt": config, "model/1/model.py": PYTHON_MODEL}, base={})
    return [each for each in repository.check() if "CT230" <= each.code <= "CT239"]


@pytest.mark.parametrize(
    ("config", "findings"),
    [
        pytest.param("max_batch_size: -1", [("CT230", "model/config.pbtxt", "max_batch_size")], id="CT230 negative"),
        pytest.param(
            "max_batch_size: 8 dynamic_batching { preferred_batch_size: [ 4, 0 ] }",
            [("CT231", "model/config.pbtxt", "dynamic_batching.preferred_batch_size[1]")],
            id="CT231 zero",
        ),
        pytest.param(
            "max_batch_size: 8 dynamic_batching { preferred_batch_size: [ 4, 16 ] }",
            [("CT232", "model/config.pbtxt", "dynamic_batching.preferred_batch_size[1]")],
            id="CT232 too large",
        ),
        pytest.param(
            "dynamic_batching { preferred_batch_size: 4 }",
            [("CT232", "model/config.pbtxt", "dynamic_batching.preferred_batch_size[0]")],
            id="CT232 without max_batch_size",
        ),
        pytest.param(
            "max_batch_size: 8 dynamic_batching { priority_levels: 2 }",
            [("CT233", "model/config.pbtxt", "dynamic_batching.default_priority_level")],
            id="CT233 left out",
        ),
        pytest.param(
            "max_batch_size: 8 dynamic_batching { priority_levels: 2 default_priority_level: 3 }",
            [("CT233", "model/config.pbtxt", "dynamic_batching.default_priority_level")],
            id="CT233 too high",
        ),
        pytest.param(
            "max_batch_size: 8 dynamic_batching { priority_levels: 1 default_priority_level: 1 "
            "priority_queue_policy { key: 2 value { } } }",
            [("CT234", "model/config.pbtxt", 'dynamic_batching.priority_queue_policy["2"]')],
            id="CT234 too high",
        ),
        pytest.param(
            "max_batch_size: 8 dynamic_batching { default_priority_level: 1 priority_queue_policy { key: 1 "
            "value { max_queue_size: 1 } } }",
            [
                ("CT235", "model/config.pbtxt", "dynamic_batching.default_priority_level"),
                ("CT235", "model/config.pbtxt", "dynamic_batching.priority_queue_policy"),
            ],
            id="CT235 both",
        ),
        pytest.param(
            "max_batch_size: 8 dynamic_batching { preserve_ordering: true priority_levels: 2 "
            "default_priority_level: 1 }",
            [("CT236", "model/config.pbtxt", "dynamic_batching.preserve_ordering")],
            id="CT236",
        ),
        pytest.param(
            "max_batch_size: 8 dynamic_batching { preserve_ordering: true default_queue_policy { "
            "timeout_action: DELAY default_timeout_microseconds: 1 } }",
            [("CT237", "model/config.pbtxt", "dynamic_batching.default_queue_policy.timeout_action")],
            id="CT237 default",
        ),
        pytest.param(
            "max_batch_size: 8 dynamic_batching { preserve_ordering: true priority_levels: 1 "
            "default_priority_level: 1 priority_queue_policy { key: 1 value { timeout_action: DELAY "
            "default_timeout_microseconds: 1 } } }",
            [("CT237", "model/config.pbtxt", 'dynamic_batching.priority_queue_policy["1"].timeout_action')],
            id="CT237 of one priority",
        ),
        pytest.param(
            "max_batch_size: 8 dynamic_batching { default_queue_policy { timeout_action: DELAY "
            "allow_timeout_override: true } }",
            [
                ("CT238", "model/config.pbtxt", "dynamic_batching.default_queue_policy.allow_timeout_override"),
                ("CT238", "model/config.pbtxt", "dynamic_batching.default_queue_policy.timeout_action"),
            ],
            id="CT238 both",
        ),
    ],
)
def test_it_is_found(messages: Messages, write: Write, config: str, findings: list[Place]) -> None:
    assert messages.of(found(write, 'backend: "python" ' + config)) == findings


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(
            "",
            id="nothing said",
        ),
        pytest.param(
            "max_batch_size: 8 dynamic_batching { }",
            id="batching",
        ),
        pytest.param(
            "max_batch_size: 8 dynamic_batching { preferred_batch_size: [ 1, 8 ] }",
            id="preferred sizes",
        ),
        pytest.param(
            "max_batch_size: 8 dynamic_batching { priority_levels: 2 default_priority_level: 2 "
            "priority_queue_policy { key: 1 value { max_queue_size: 9 } } }",
            id="priorities",
        ),
        pytest.param(
            "max_batch_size: 8 dynamic_batching { preserve_ordering: true priority_levels: 1 "
            "default_priority_level: 1 }",
            id="ordering with one priority",
        ),
        pytest.param(
            "max_batch_size: 8 dynamic_batching { preserve_ordering: true default_queue_policy { "
            "default_timeout_microseconds: 1 } }",
            id="ordering that rejects",
        ),
        pytest.param(
            "max_batch_size: 8 dynamic_batching { default_queue_policy { default_timeout_microseconds: 1 "
            "allow_timeout_override: true } }",
            id="a timeout that requests may shorten",
        ),
        pytest.param(
            "dynamic_batching { default_queue_policy { max_queue_size: 9 } }",
            id="a batcher for its queue",
        ),
    ],
)
def test_it_is_no_fault(write: Write, config: str) -> None:
    assert found(write, 'backend: "python" ' + config) == []


IO = 'input { name: "x" data_type: TYPE_FP32 dims: 4 } output { name: "y" data_type: TYPE_FP32 dims: 4 } '


@pytest.mark.parametrize("backend", ["python", "pytorch", "onnxruntime"])
def test_dynamic_batching_needs_a_batch_where_nothing_completes_it(
    messages: Messages, write: Write, backend: str
) -> None:
    config = f'backend: "{backend}" {IO} dynamic_batching {{ max_queue_delay_microseconds: 500 }}'
    repository = write({"model/config.pbtxt": config, "model/1/model.py": PYTHON_MODEL}, base={})
    assert messages.of(each for each in repository.check() if each.code == "CT239") == [
        ("CT239", "model/config.pbtxt", "dynamic_batching")
    ]


@pytest.mark.parametrize("backend", ["python", "tensorrt", "dali", "mine"])
def test_dynamic_batching_waits_for_what_completes_the_batch(write: Write, backend: str) -> None:
    config = f'backend: "{backend}" {IO} dynamic_batching {{ }}'
    model = PYTHON_MODEL + "\n    @staticmethod\n    def auto_complete_config(config):\n        return config\n"
    assert "CT239" not in {
        each.code for each in write({"model/config.pbtxt": config, "model/1/model.py": model}, base={}).check()
    }
