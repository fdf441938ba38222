"""The endpoints of a region and what callers can ask them for, for `invoke`, `bench` and `local status`."""

from __future__ import annotations
