"""CT167: archives with environments of Python models that newer servers do not unpack."""

from __future__ import annotations

from collections.abc import Iterator

from cdk_triton.checks.derived.releases import is_at_least
from cdk_triton.checks.registry import Problem
from cdk_triton.checks.sources import backend
from cdk_triton.python_models.environments import (
    SAFE_SINCE,
    ModelEnvironment,
    environment_rule,
    rejected_member,
)
from cdk_triton.triton.findings import Severity


@environment_rule(
    "CT167",
    Severity.ERROR,
    "the archive of an environment has a member that the server does not unpack",
    source=backend("python_backend", "src/pb_env.cc", 103, 180),
    applies=lambda platform: is_at_least(platform, SAFE_SINCE),
)
def unsafe_archive(each: ModelEnvironment) -> Iterator[Problem]:
    """From 26.06 on, the server rejects members whose paths lead outside of the environment's directory.

    The server then does not load the model. It rejects absolute paths, paths with `..`, and paths through a symbolic
    link that comes earlier in the archive. `conda-pack`, `venv-pack` and `tar -C ENVIRONMENT -czf env.tar.gz .` do not
    write such members.

    Example:
        $ cdk-triton validate . --platform 26.06/ml.g5.xlarge --image $IMAGE
        # model/config.pbtxt
        backend: "python"
        parameters {
          key: "EXECUTION_ENV_PATH"
          value { string_value: "$$TRITON_MODEL_DIRECTORY/env.tar.gz" }
        }
        # model/env.tar.gz
        bin/activate
        lib/python3.12/os.py
        ../shared/weights.bin

    Instead:
        # model/env.tar.gz
        bin/activate
        lib/python3.12/os.py
        shared/weights.bin

    Limits:
        The rule skips an archive of more than 256 MiB, because the library does not read such an archive to its end.
    """
    found = rejected_member(each)
    if found is not None:
        name, reason = found
        yield each.unloadable(
            f"the archive has the member {name!r}, which releases from {SAFE_SINCE} on do not unpack",
            f"archive_write_header() failed with error code = -25 error message is {reason}",
            "pack the environment with conda-pack, or with `tar -C ENVIRONMENT -czf env.tar.gz .`",
        )
