"""Small model repositories for tests: a sound one, ways to break it, and those of the rules' examples."""

from __future__ import annotations

from sample_repositories.builds import PlanOfExample
from sample_repositories.examples import ExampleFindings, findings_of_example, platform_with
from sample_repositories.sound import SOUND
from sample_repositories.written import Change, Write, sound, write

__all__ = [
    "SOUND",
    "Change",
    "ExampleFindings",
    "PlanOfExample",
    "Write",
    "findings_of_example",
    "platform_with",
    "sound",
    "write",
]
