"""Links to the code that a rule follows, at the commits that were read."""

from __future__ import annotations

__all__ = ["core", "server"]

_GITHUB = "https://github.com/triton-inference-server"
_SERVER = "e1db8a603d863b1317ee859bdeea2be19959462e"  # 2026-08-19, 26.09 in the making
_CORE = "73aad7c3348d040c7087d57837d75822c488495e"  # 2026-06-09


def server(path: str, first: int, last: int) -> str:
    """Lines of triton-inference-server/server."""
    return f"{_GITHUB}/server/blob/{_SERVER}/{path}#L{first}-L{last}"


def core(path: str, first: int, last: int) -> str:
    """Lines of triton-inference-server/core."""
    return f"{_GITHUB}/core/blob/{_CORE}/{path}#L{first}-L{last}"
