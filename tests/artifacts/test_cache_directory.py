"""Where digests and other things that may get lost are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdk_triton.artifacts import cache_directory


@pytest.mark.parametrize(
    ("configured", "expected"),
    [("/var/cache/me", "/var/cache/me/cdk-triton"), ("relative", "~/.cache/cdk-triton"), ("", "~/.cache/cdk-triton")],
)
def test_the_cache_is_where_the_xdg_specification_says(
    configured: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", configured)
    assert cache_directory() == Path(expected).expanduser()
