"""Rehearsals on this machine: what `validate --load` and `golden record --local` have in common.

* `running` starts the program of `gpu_build` with the tritonserver of the extra `local`;
* `text` says how it went;
* `golden` is the command `golden record`.
"""
