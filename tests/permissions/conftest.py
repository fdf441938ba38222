"""The worlds of the constructs' tests."""

from tests.hosting.conftest import _flattened, _shared_world, _stack, _world

__all__ = ["_flattened", "_shared_world", "_stack", "_world"]
