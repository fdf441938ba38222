"""Everything in the repository that a program writes: `make generate`.

Each module of this package whose name does not begin with an underscore writes one thing. It describes that thing by a
constant `GENERATOR`. Modules are discovered: to add one, write the module.
"""

from __future__ import annotations

from tools.generate._generator import ROOT, Files, GenerateError, Generator, generators, recorded_by

__all__ = ["ROOT", "Files", "GenerateError", "Generator", "generators", "recorded_by"]
