"""The tables of docs/cdk_nag.md that list what cdk-nag finds in the examples."""

from __future__ import annotations

from tools.generate import recorded_by

GENERATOR = recorded_by(
    "tests/security/test_nag.py::test_the_page_lists_what_is_acknowledged",
    "tests/security/test_nag.py::test_the_page_lists_what_other_packs_report",
)
