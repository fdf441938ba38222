"""Metrics, which are facts, and alarms, dashboard and retention of logs, which are opinions."""
