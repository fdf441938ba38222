"""The stack events of a deployment: tests/end_to_end/stack_events.txt.

The comments of that file contain the rules of CloudFormation that the events follow. They are written by hand: after a
change, compare the new events with them.
"""

from __future__ import annotations

from tools.generate import recorded_by

STORY = "tests/end_to_end/test_cdk_cli.py"

GENERATOR = recorded_by(
    f"{STORY}::test_bootstrap",
    f"{STORY}::test_deploy_creates_everything",
    f"{STORY}::test_an_update_replaces_and_cleans_up",
    f"{STORY}::test_a_failing_update_rolls_back_while_the_endpoint_serves",
    f"{STORY}::test_destroy_leaves_only_what_is_retained",
)
