"""The variables that a container must not be given, compared with the real bash."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess

from cdk_triton.triton import ContainerEnvironment
from cdk_triton.triton.environment import container_variables
from cdk_triton.triton.variable_names import reserved_because

BASH = shutil.which("bash") or "bash"
VALUE = "given"


def names_of_the_shell() -> list[str]:
    """Every variable that bash has by itself, and every name in its program that looks like one."""
    own = subprocess.run([BASH, "-c", "compgen -v"], capture_output=True, text=True, check=True, env={}).stdout
    text = subprocess.run(["strings", "-n", "2", BASH], capture_output=True, text=True, check=True).stdout
    return sorted(
        {name for name in (own + text).split() if name.isidentifier() and name.isascii() and name == name.upper()}
    )


def test_the_shell_hands_on_every_variable_that_is_taken() -> None:
    """It would replace the value of some, and complain of others."""
    taken = {name: VALUE for name in names_of_the_shell() if reserved_because(name) is None}
    taken = {name: value for name, value in taken.items() if not name.startswith("LC_")}  # VALUE is no locale
    assert {"HOME", "TZ", "TMPDIR", "TERM"} <= taken.keys()
    done = subprocess.run(
        [BASH, "-c", "exec -a env /usr/bin/env"], env=taken, capture_output=True, text=True, check=True
    )
    seen = dict(line.partition("=")[::2] for line in done.stdout.splitlines())
    assert {name: seen.get(name) for name in taken} == taken
    assert done.stderr == ""


def test_what_the_loader_and_the_shell_read_is_not_taken() -> None:
    names = [
        *("LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "LD_BIND_NOW"),
        *("PATH", "BASH_ENV", "BASHOPTS", "SHELLOPTS", "ENV", "IFS", "CDPATH", "GLOBIGNORE", "PS4", "POSIXLY_CORRECT"),
        *("SAGEMAKER_TRITON_LOG_INFO", "SAGEMAKER_MULTI_MODEL", "SAGEMAKER_BIND_TO_PORT", "SAGEMAKER_ARGS"),
    ]
    assert [name for name in names if reserved_because(name) is None] == []


def test_the_fix_names_the_field_that_writes_the_variable() -> None:
    environment = ContainerEnvironment(
        port=9000,
        safe_port_range=(9000, 9009),
        grpc_port=9001,
        metrics_port=9002,
        allow_grpc=True,
        allow_metrics=True,
        ping_mode="live",
        log_info=True,
        thread_count=4,
        shm_default_byte_size=2**26,
        model_load_gpu_limit=0.9,
        additional_args=("--exit-timeout-secs=5",),
    )
    written = container_variables(environment, multi_model=False, default_model="model")
    fields = {each.name for each in dataclasses.fields(ContainerEnvironment)}
    for name in (each for each in written if each.startswith("SAGEMAKER_")):
        _, fix = reserved_because(name) or ("", "")
        assert set(fix.split()) & fields, name
