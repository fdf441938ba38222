"""The fixtures of the local AWS whose endpoints answer with what they are asked."""

from __future__ import annotations

from tests.cli.echo import _echo_aws, _echo_session, shop, world

__all__ = ["_echo_aws", "_echo_session", "shop", "world"]
