"""CT167: archives with environments of Python models that newer servers do not unpack."""

from __future__ import annotations

from collections.abc import Iterator

from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.releases import is_at_least
from cdk_triton.checks.registry import Problem, rule
from cdk_triton.checks.sources import backend
from cdk_triton.python_models.environments import SAFE_SINCE, environments, refused_member
from cdk_triton.triton.findings import Severity


@rule(
    "CT167",
    Severity.ERROR,
    "the archive of an environment has a member that the server does not unpack",
    source=backend("python_backend", "src/pb_env.cc", 103, 180),
    applies=lambda platform: is_at_least(platform, SAFE_SINCE),
)
def unsafe_archive(context: CheckContext) -> Iterator[Problem]:
    """From 26.06 on, the server rejects members whose paths lead outside of the environment's directory.

    The server then does not load the model. The server rejects absolute paths, paths with `..`, and paths through a
    symbolic link that is earlier in the archive. `conda-pack`, `venv-pack` and `tar -C ENVIRONMENT -czf env.tar.gz .`
    do not write such members.

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
    for each in environments(context):
        found = refused_member(context, each)
        if found is not None and each.path is not None:
            name, reason = found
            yield Problem(
                each.path,
                f"the archive has the member {name!r}, which releases from {SAFE_SINCE} on do not unpack, so the "
                f"server would not load {each.model.name!r}: archive_write_header() failed with error code = -25 error "
                f"message is {reason}",
                "pack the environment with conda-pack, or with `tar -C ENVIRONMENT -czf env.tar.gz .`",
            )
