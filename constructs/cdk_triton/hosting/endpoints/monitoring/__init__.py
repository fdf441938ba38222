"""Metrics, which are facts, and alarms, dashboard and retention of logs, which are opinions."""

from __future__ import annotations
