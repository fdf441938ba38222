"""The fixtures that write repositories."""

from sample_repositories import write

__all__ = ["write"]
