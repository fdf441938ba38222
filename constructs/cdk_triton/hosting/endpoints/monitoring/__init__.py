"""Dashboard, alarms, published metrics and the retention of logs."""

from __future__ import annotations
