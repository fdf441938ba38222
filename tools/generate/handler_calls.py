"""The calls that the handlers make: tests/handlers/calls.json, which the policies are compared with."""

from __future__ import annotations

from tools.generate import recorded_by

GENERATOR = recorded_by("tests/handlers/test_recorded_calls.py::test_the_recorded_calls_are_the_listed_ones")
