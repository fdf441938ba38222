"""Repositories for the rules about batching, sequences and instances, and what the server has to say of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from cdk_triton.triton import ModelRepository

__all__ = [
    "CACHE",
    "DECOUPLED",
    "STEP",
    "TENSORS",
    "Files",
    "Refusal",
    "batching",
    "check_loaded",
    "check_refused",
    "ensemble",
    "errors_of",
    "group",
    "model",
    "sequences",
    "write",
]

Refusal = Callable[[ModelRepository], str | None]
Files = Mapping[str, str]

TENSORS = """
input { name: "IN" data_type: TYPE_FP32 dims: 4 }
output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
"""

STEP = """
ensemble_scheduling {
  step {
    model_name: "child" model_version: -1
    input_map { key: "IN" value: "IN" } output_map { key: "OUT" value: "OUT" }
  }
}
"""

DECOUPLED = "model_transaction_policy { decoupled: true }"
CACHE = "response_cache { enable: true }"


def model(text: str, backend: str = 'backend: "null"') -> Files:
    """A repository with one model."""
    return {"model/config.pbtxt": backend + TENSORS + text, "model/1/weights": ""}


def batching(text: str) -> Files:
    return model(f"max_batch_size: 8 dynamic_batching {{ {text} }}")


def sequences(text: str) -> Files:
    return model(f"max_batch_size: 8 sequence_batching {{ {text} }}")


def group(text: str, backend: str = 'backend: "null"') -> Files:
    return model(f"instance_group {{ {text} }}", backend)


def ensemble(text: str, child: str = "", backend: str = "") -> Files:
    return {
        "whole/config.pbtxt": f'platform: "ensemble" {backend} {TENSORS} {STEP} {text}',
        "whole/1/.gitkeep": "",
        "child/config.pbtxt": f'backend: "null" {TENSORS} {child}',
        "child/1/weights": "",
    }


def write(root: Path, files: Files) -> ModelRepository:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return ModelRepository.from_directory(root)


# The codes that these rules have; those of other files are judged elsewhere (a missing model.plan, for example).
OWN = tuple(f"CT{number}" for number in range(230, 290))


def errors_of(repository: ModelRepository) -> list[tuple[str, str]]:
    """Code and message of what the rules call an error."""
    return [(each.code, each.message) for each in repository.check() if each.severity == "error" and each.code in OWN]


def check_refused(repository: ModelRepository, refusal: Refusal, code: str, words: str, *, attempts: int = 1) -> None:
    """The one error of the repository has this code, and quotes what the server says."""
    ((found, message),) = errors_of(repository)
    assert found == code
    assert words in message
    said: str | None = ""
    for _ in range(attempts):
        said = refusal(repository)
        assert said is not None, "the server loaded it"
        if words in said:
            return
    raise AssertionError(f"{words!r} is not in what the server said: {said}")


def check_loaded(repository: ModelRepository, refusal: Refusal) -> None:
    """The rules see no error in the repository, and the server loads it."""
    assert errors_of(repository) == []
    assert refusal(repository) is None
