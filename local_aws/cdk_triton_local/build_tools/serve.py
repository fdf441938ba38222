"""The stand-in for `serve`, the entry point of SageMaker's Triton images: runs the tritonserver of this machine.

`CDK_TRITON_STAND_IN_ROOT` names the directory that stands for `/`. A repository below it, in `opt/ml/model` or
`opt/ml/models/<hash>/model`, is changed as the endpoints of the local AWS change it: GPU instances become CPU
instances.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Final

from cdk_triton.errors import LocalError
from cdk_triton_local.build_tools import modules_directory
from cdk_triton_local.triton.backends import RELEASE
from cdk_triton_local.triton.loopback import loopback_library
from cdk_triton_local.triton.model_data import move_deeper, use_cpu_instances
from cdk_triton_local.triton.own_builds import use_own_builds
from cdk_triton_local.triton.server import ServerSettings, TritonServer, free_port
from cdk_triton_local.triton.server_files import arrange_server_files

__all__ = ["main"]

_GRACE_SECONDS: Final = 35.0  # the server's own exit timeout is 30 s
_LOOK_SECONDS: Final = 0.05
_READY_SECONDS: Final = 86_400.0  # whoever starts `serve` decides how long it waits


def main() -> int:
    """Run a server until it ends, or until SIGTERM; the exit status is the server's, or 1 if it does not start."""
    _print("cdk-triton stand-in for serve: tritonserver of release 24.10, on the CPU of this machine")
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    # Below the root, which its owner removes even if this process is killed.
    with tempfile.TemporaryDirectory(prefix="cdk-triton-serve-", dir=_root()) as directory:
        log = Path(directory) / "log"
        log.touch()
        with log.open("rb") as printed:
            following = threading.Event()
            follower = threading.Thread(target=_follow, args=(printed, following), daemon=True)
            follower.start()
            try:
                return _serve(Path(directory), log, stopped)
            except LocalError as error:
                if not log.stat().st_size:  # otherwise the server has said why
                    _print(f"error: {error}")
                return 1
            finally:
                following.set()
                follower.join()


def _serve(directory: Path, log: Path, stopped: threading.Event) -> int:
    server = TritonServer(_settings(directory), _environment(), _repository(), log, stopped.is_set)
    ended: list[int] = []
    waiting = threading.Thread(target=lambda: ended.append(server.wait()), daemon=True)
    waiting.start()
    while waiting.is_alive() and not stopped.wait(_LOOK_SECONDS):
        pass
    if waiting.is_alive():
        server.stop(grace=_GRACE_SECONDS)
        waiting.join()
    return ended[0]


def _settings(directory: Path) -> ServerSettings:
    return ServerSettings(arrange_server_files(directory), loopback_library(), _ports(), _READY_SECONDS)


def _ports() -> Callable[[], int]:
    """The port at which the endpoint has to listen, and free ones if the container's settings need further ones."""
    others = any(os.environ.get(f"SAGEMAKER_TRITON_ALLOW_{what}") == "true" for what in ("GRPC", "METRICS"))
    bound = int(os.environ["SAGEMAKER_BIND_TO_PORT"])

    def ports() -> Iterator[int]:
        yield bound
        while True:
            yield free_port() if others else bound

    return ports().__next__


def _environment() -> dict[str, str]:
    """The variables of the server, without those of other stand-ins."""
    found = {n: value for n, value in os.environ.items() if n == RELEASE or not n.startswith("CDK_TRITON_")}
    if found.get("PYTHONPATH") == str(modules_directory()):
        del found["PYTHONPATH"]
    return found


def _root() -> Path:
    return Path(os.environ["CDK_TRITON_STAND_IN_ROOT"])


def _repository() -> Path:
    """The directory that the server starts with; below it or beside it, the models are ready for this machine."""
    root = _root()
    if os.environ.get("SAGEMAKER_MULTI_MODEL") != "true":
        use_cpu_instances(root / "opt/ml/model")
        use_own_builds(root / "opt/ml/model", _print)
        return root / "opt/ml/model"
    for model in (root / "opt/ml/models").glob("*/model"):
        use_cpu_instances(model)
        use_own_builds(model, _print)
        move_deeper(model)
    (root / "tmp/sagemaker").mkdir(parents=True, exist_ok=True)
    return root / "tmp/sagemaker"


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _follow(printed: IO[bytes], ended: threading.Event) -> None:
    """Pass on what the server prints, as it prints it."""
    while True:
        is_last = ended.wait(_LOOK_SECONDS)
        shutil.copyfileobj(printed, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        if is_last:
            return


if __name__ == "__main__":
    sys.exit(main())
