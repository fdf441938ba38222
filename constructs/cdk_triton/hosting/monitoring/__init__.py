"""Metrics, which are facts, and alarms, dashboard and retention of logs, which are opinions."""

from __future__ import annotations

__all__ = ["RUNBOOK"]

RUNBOOK = "docs/monitoring.md"
"""The page with a section per alarm, in the sources of this library."""
