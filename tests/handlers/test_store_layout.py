"""The handlers repeat some literals of the bucket's layout, which they cannot import: both have to agree."""

from __future__ import annotations

import pytest

from build_model import Cloud
from build_model.cloud import STORE
from build_model.steps import PROCESSING, TWO, deploy, job, poll
from cdk_triton.artifacts import layout


@pytest.mark.parametrize("plan", [TWO, PROCESSING], ids=["codebuild", "processing"])
def test_every_object_that_a_build_leaves_is_where_the_layout_has_it(cloud: Cloud, plan: int) -> None:
    stack = deploy(cloud, plan)
    poll(stack)
    cloud.end(job(cloud), "SUCCEEDED", {})
    assert poll(stack).done

    (build,) = {state["build"] for state in cloud.states()}
    keys = {key for bucket, key in cloud.s3.history if bucket == STORE}
    committed = {key for key in keys if layout.parse_artifact_object(key)}
    locks = {key for key in keys if layout.parse_lock_key(key)}
    inputs = {key for key in keys if key.startswith(layout.build_inputs_prefix(build))}
    outputs = {key for key in keys if key.startswith(layout.build_outputs_prefix(build))}
    fleet = {key for key in keys if layout.parse_fleet_object(key)}

    assert all([committed, locks, inputs, outputs])
    assert keys == committed | locks | inputs | outputs | fleet | {layout.build_state_key(build)}
    assert {layout.parse_lock_key(key) for key in locks} == {
        part.key for key in committed if (part := layout.parse_artifact_object(key))
    }
