"""The rules CT230 to CT241: how a model batches and queues its requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sample_repositories.sound import PYTHON_MODEL

if TYPE_CHECKING:
    from sample_repositories import Write


def found(write: Write, config: str) -> list[str]:
    """What the rules CT230 to CT249 find in a repository with one model."""
    repository = write({"model/config.pbtxt": config, "model/1/model.py": PYTHON_MODEL}, base={})
    return [str(each) for each in repository.check() if "CT230" <= each.code <= "CT249"]


@pytest.mark.parametrize(
    ("config", "findings"),
    [
        pytest.param(
            "max_batch_size: -1",
            [
                "model/config.pbtxt max_batch_size: error CT230: max_batch_size is -1, and the server would "
                "not load 'model': 'max_batch_size' must be non-negative value for model; write 0 if the "
                "model does not batch, and the largest batch if it does",
            ],
            id="CT230 negative",
        ),
        pytest.param(
            "max_batch_size: 8 dynamic_batching { preferred_batch_size: [ 4, 0 ] }",
            [
                "model/config.pbtxt dynamic_batching.preferred_batch_size[1]: error CT231: the preferred "
                "batch size 0 is no size of a batch, and the server would not load 'model': dynamic batching "
                "preferred size must be positive for model; leave it out, or write a size from 1 to "
                "max_batch_size",
            ],
            id="CT231 zero",
        ),
        pytest.param(
            "max_batch_size: 8 dynamic_batching { preferred_batch_size: [ 4, 16 ] }",
            [
                "model/config.pbtxt dynamic_batching.preferred_batch_size[1]: error CT232: the preferred "
                "batch size is 16 and max_batch_size is 8, and the server would not load 'model': dynamic "
                "batching preferred size must be <= max batch size for model; set max_batch_size to 16 or "
                "more, or leave the preferred size out",
            ],
            id="CT232 too large",
        ),
        pytest.param(
            "dynamic_batching { preferred_batch_size: 4 }",
            [
                "model/config.pbtxt dynamic_batching.preferred_batch_size[0]: error CT232: the preferred "
                "batch size is 4 and max_batch_size is 0, and the server would not load 'model': dynamic "
                "batching preferred size must be <= max batch size for model; set max_batch_size to 4 or "
                "more, or leave the preferred size out",
            ],
            id="CT232 without max_batch_size",
        ),
        pytest.param(
            "max_batch_size: 8 dynamic_batching { priority_levels: 2 }",
            [
                "model/config.pbtxt dynamic_batching.default_priority_level: error CT233: "
                "default_priority_level is left out and priority_levels is 2, and the server would not load "
                "'model': default priority level must be in range [1, 2] for model; write a "
                "default_priority_level from 1, which is served first, to 2",
            ],
            id="CT233 left out",
        ),
        pytest.param(
            "max_batch_size: 8 dynamic_batching { priority_levels: 2 default_priority_level: 3 }",
            [
                "model/config.pbtxt dynamic_batching.default_priority_level: error CT233: "
                "default_priority_level is 3 and priority_levels is 2, and the server would not load "
                "'model': default priority level must be in range [1, 2] for model; write a "
                "default_priority_level from 1, which is served first, to 2",
            ],
            id="CT233 too high",
        ),
        pytest.param(
            "max_batch_size: 8 dynamic_batching { priority_levels: 1 default_priority_level: 1 "
            "priority_queue_policy { key: 2 value { } } }",
            [
                'model/config.pbtxt dynamic_batching.priority_queue_policy["2"]: error CT234: a queue policy '
                "is for priority level 2 and priority_levels is 1, and the server would not load 'model': "
                "priority queue policy must have priority level in range [1, 1] for model; take one of the "
                "levels, or raise priority_levels",
            ],
            id="CT234 too high",
        ),
        pytest.param(
            "max_batch_size: 8 dynamic_batching { default_priority_level: 1 priority_queue_policy { key: 1 "
            "value { max_queue_size: 1 } } }",
            [
                "model/config.pbtxt dynamic_batching.default_priority_level: warning CT235: "
                "default_priority_level is set and priority_levels is not, so that the server would serve "
                "'model' without it: all requests have the same priority; set priority_levels, or leave it "
                "out",
                "model/config.pbtxt dynamic_batching.priority_queue_policy: warning CT235: "
                "priority_queue_policy is set and priority_levels is not, so that the server would serve "
                "'model' without it: all requests have the same priority; set priority_levels, or make it "
                "the default_queue_policy",
            ],
            id="CT235 both",
        ),
        pytest.param(
            "max_batch_size: 8 dynamic_batching { preserve_ordering: true priority_levels: 2 "
            "default_priority_level: 1 }",
            [
                "model/config.pbtxt dynamic_batching.preserve_ordering: error CT236: priority_levels is 2 "
                "and preserve_ordering is true, and the server would not load 'model': Only one priority "
                "level is allowed when 'preserve_ordering' is true for model; leave out preserve_ordering, "
                "or the priorities",
            ],
            id="CT236",
        ),
        pytest.param(
            "max_batch_size: 8 dynamic_batching { preserve_ordering: true default_queue_policy { "
            "timeout_action: DELAY default_timeout_microseconds: 1 } }",
            [
                "model/config.pbtxt dynamic_batching.default_queue_policy.timeout_action: error CT237: the "
                "queue delays late requests and preserve_ordering is true, and the server would not load "
                "'model': Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true "
                "for model; reject late requests (timeout_action: REJECT), or leave out preserve_ordering",
            ],
            id="CT237 default",
        ),
        pytest.param(
            "max_batch_size: 8 dynamic_batching { preserve_ordering: true priority_levels: 1 "
            "default_priority_level: 1 priority_queue_policy { key: 1 value { timeout_action: DELAY "
            "default_timeout_microseconds: 1 } } }",
            [
                'model/config.pbtxt dynamic_batching.priority_queue_policy["1"].timeout_action: error CT237: '
                "the queue delays late requests and preserve_ordering is true, and the server would not load "
                "'model': Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true "
                "for model; reject late requests (timeout_action: REJECT), or leave out preserve_ordering",
            ],
            id="CT237 of one priority",
        ),
        pytest.param(
            "max_batch_size: 8 dynamic_batching { default_queue_policy { timeout_action: DELAY "
            "allow_timeout_override: true } }",
            [
                "model/config.pbtxt dynamic_batching.default_queue_policy.allow_timeout_override: warning "
                "CT238: allow_timeout_override is set and default_timeout_microseconds is not, so that no "
                "request to 'model' would ever time out, whatever timeout it asks for; set "
                "default_timeout_microseconds to the longest time that a request may wait",
                "model/config.pbtxt dynamic_batching.default_queue_policy.timeout_action: warning CT238: "
                "timeout_action is set and default_timeout_microseconds is not, so that no request to "
                "'model' would ever time out, whatever timeout it asks for; set default_timeout_microseconds "
                "to the longest time that a request may wait",
            ],
            id="CT238 both",
        ),
        pytest.param(
            'sequence_batching { } parameters { key: "TRITON_BATCH_STRATEGY_PATH" value { string_value: "/x.so" } }',
            [
                'model/config.pbtxt parameters["TRITON_BATCH_STRATEGY_PATH"]: error CT240: '
                "TRITON_BATCH_STRATEGY_PATH is set beside sequence_batching, and the server would not load "
                "'model': TRITON_BATCH_STRATEGY_PATH cannot be specified with sequence batcher, using "
                "default batching strategy; leave the parameter out",
            ],
            id="CT240",
        ),
        pytest.param(
            'parameters { key: "TRITON_BATCH_STRATEGY_PATH" value { string_value: "/opt/ml/model/model/2/x.so" } }',
            [
                'model/config.pbtxt parameters["TRITON_BATCH_STRATEGY_PATH"]: error CT241: there would be no '
                "file '/opt/ml/model/model/2/x.so' in the container, and the server would not load 'model': "
                "Batching library path not found: /opt/ml/model/model/2/x.so; put batchstrategy.so into "
                "model and leave the parameter out; the server finds it there",
            ],
            id="CT241",
        ),
    ],
)
def test_it_is_found(write: Write, config: str, findings: list[str]) -> None:
    assert found(write, 'backend: "python" ' + config) == findings


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
        pytest.param(
            'parameters { key: "TRITON_BATCH_STRATEGY_PATH" value { string_value: "/opt/custom/batch.so" } }',
            id="a library of the image",
        ),
        pytest.param(
            'parameters { key: "TRITON_BATCH_STRATEGY_PATH" value { string_value: "/opt/ml/model/model/1/model.py" } }',
            id="a library of the model",
        ),
    ],
)
def test_it_is_no_fault(write: Write, config: str) -> None:
    assert found(write, 'backend: "python" ' + config) == []


IO = 'input { name: "x" data_type: TYPE_FP32 dims: 4 } output { name: "y" data_type: TYPE_FP32 dims: 4 } '


@pytest.mark.parametrize("backend", ["python", "pytorch", "onnxruntime"])
def test_dynamic_batching_needs_a_batch_where_nothing_completes_it(write: Write, backend: str) -> None:
    config = f'backend: "{backend}" {IO} dynamic_batching {{ max_queue_delay_microseconds: 500 }}'
    repository = write({"model/config.pbtxt": config, "model/1/model.py": PYTHON_MODEL}, base={})
    assert [str(each) for each in repository.check() if each.code == "CT239"] == [
        "model/config.pbtxt dynamic_batching: warning CT239: dynamic_batching is set and max_batch_size is 0, so that "
        "the server would run every request to 'model' by itself; set max_batch_size and take the batch dimension out "
        "of dims, or leave out dynamic_batching"
    ]


@pytest.mark.parametrize("backend", ["python", "tensorrt", "dali", "mine"])
def test_dynamic_batching_waits_for_what_completes_the_batch(write: Write, backend: str) -> None:
    config = f'backend: "{backend}" {IO} dynamic_batching {{ }}'
    model = PYTHON_MODEL + "\n    @staticmethod\n    def auto_complete_config(config):\n        return config\n"
    assert "CT239" not in {
        each.code for each in write({"model/config.pbtxt": config, "model/1/model.py": model}, base={}).check()
    }


def test_a_multi_model_endpoint_has_no_place_for_a_batching_library(write: Write) -> None:
    config = 'parameters { key: "TRITON_BATCH_STRATEGY_PATH" value { string_value: "/opt/ml/model/model/1/model.py" } }'
    repository = write({"model/config.pbtxt": 'backend: "python" ' + config, "model/1/model.py": PYTHON_MODEL}, base={})
    assert "CT241" not in {each.code for each in repository.check("single")}
    assert "CT241" in {each.code for each in repository.check("multi")}


@pytest.mark.parametrize("batching", ["", "sequence_batching { }"])
def test_an_ensemble_looks_for_no_batching_library(write: Write, batching: str) -> None:
    config = f'parameters {{ key: "TRITON_BATCH_STRATEGY_PATH" value {{ string_value: "x.so" }} }} {batching}'
    codes = {each.code for each in write({"model/config.pbtxt": 'platform: "ensemble" ' + config}, base={}).check()}
    assert not codes & {"CT240", "CT241"}
