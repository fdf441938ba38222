"""The models inside the archives of a multi-model endpoint, which only their ensemble calls.

Triton's SageMaker endpoint gives the ensemble of an archive the name of the target model. The other models of the
archive keep theirs (`SageMakerMMELoadModel` in triton-inference-server/server, src/sagemaker_server.cc). A load then
loads the models of the same names in other archives again, if their directories have changed. Those of Python models
have: the Python of Triton 24.10 writes bytecode there, whatever its environment is (`NO_BYTECODE` in
`cdk_triton.triton.python_variables`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from cdk_triton.errors import ModelConfigError
from cdk_triton.triton import parse_model_config

__all__ = ["SharedNames", "inner_models"]


class SharedNames:
    """Logs a sentence if archives that are loaded together have inner models of the same name, once for each name.

    Args:
        log: gets the sentences.
    """

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self._told: set[str] = set()
        self._lock = threading.Lock()

    def look(self, target_model: str, repositories: Mapping[str, Path]) -> None:
        """Compare one target model with the others.

        Args:
            target_model: the one that is about to be loaded.
            repositories: the directory of each target model that is loaded or about to be, by its name.
        """
        own = inner_models(repositories[target_model])
        for other, repository in repositories.items():
            shared = sorted(own & inner_models(repository)) if own and other != target_model else []
            with self._lock:
                shared = [name for name in shared if name not in self._told]
                self._told.update(shared)
            if shared:
                self._log(
                    f"target models {target_model} and {other} both have inner models named {', '.join(shared)}: when "
                    "Triton 24.10, which runs here, loads one of the two, it loads the inner models of the other "
                    "again; give the inner models of each ensemble unique names"
                )


def inner_models(repository: Path) -> frozenset[str]:
    """The names of the models in an unpacked archive that Triton does not give the name of the target model."""
    platforms = {}
    for path in repository.glob("*/config.pbtxt"):
        try:
            platforms[path.parent.name] = parse_model_config(path.read_bytes(), path=str(path)).platform
        except (ModelConfigError, OSError):  # the server reports the fault, or it is being unloaded
            continue
    ensembles = {name for name, platform in platforms.items() if platform == "ensemble"}
    return frozenset(platforms.keys() - ensembles) if ensembles else frozenset()
