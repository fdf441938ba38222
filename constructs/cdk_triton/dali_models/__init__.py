"""What the library knows about models of the DALI backend: their pipelines, and the rules about both.

`reader` reads a definition (`dali.py`) or a serialised pipeline (`model.dali`) without DALI and without running code.
`models` finds the pipelines of a repository, and `rules` has the rules.
"""
