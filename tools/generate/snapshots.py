"""The templates of the example stacks, in tests/snapshots."""

from __future__ import annotations

from tools.generate import recorded_by

GENERATOR = recorded_by(
    "tests/hosting/test_example_app.py::test_the_template_is_the_one_that_was_looked_at",
    "tests/examples/test_pipeline_app.py::test_the_template_is_the_one_that_was_looked_at",
    "tests/examples/test_platform_team.py::test_the_template_is_the_one_that_was_looked_at",
    obsolete="tests/snapshots/*.template.json",
)
