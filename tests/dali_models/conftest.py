"""The fixtures that write repositories."""

from sample_repositories import findings_of_example, sound, write

__all__ = ["findings_of_example", "sound", "write"]
