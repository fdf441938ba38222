"""The tensors of a request, from files, from values on the command line, or random; for `invoke` and `bench`."""

from __future__ import annotations
