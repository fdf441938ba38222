"""The endpoints of a region and what callers can send them, for `invoke`, `bench` and `local status`."""

from __future__ import annotations
