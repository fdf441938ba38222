"""Links to the code that a rule follows, at the commits that were read."""

from __future__ import annotations

__all__ = ["backend", "core", "core_commit", "rapids_triton", "release_notes", "server", "treelite"]

_GITHUB = "https://github.com/triton-inference-server"
_SERVER = "e1db8a603d863b1317ee859bdeea2be19959462e"  # 2026-08-19, 26.09 in the making
_CORE = "73aad7c3348d040c7087d57837d75822c488495e"  # 2026-06-09
_BACKENDS = {
    "backend": "3f57fb90bee16b86232ee79c45eb4ce69c9ad489",  # 2026-02-09, what backends have in common
    "dali_backend": "01783f8f28b2a29cb64b06201d9d7cc20db27f5d",  # 2026-06-30
    "fil_backend": "d71f8ef1648027c6e0514d45f1969751684528b5",  # 2026-06-12
    "identity_backend": "30ff4255d09a4ec7547e7949a75d0cefb7e3bb28",  # 2025-11-04
    "onnxruntime_backend": "00fd3e87a0918193d7921871f2e872efdb8d9c9a",  # 2026-06-29
    "openvino_backend": "db19304291d4b8e52965801cb86b10e536b90450",  # 2026-08-21
    "python_backend": "f9088ff60944cc5a2e97ff16baba55f1666852bc",  # 2026-07-17
    "pytorch_backend": "266fd386ef7567cecb4b4772fb0fdc83ea5884d4",  # 2026-05-13
    "repeat_backend": "1ee78c47ba8c10d1f69b53ab339e789b46d01378",  # 2025-07-15
    "square_backend": "7c724f293bb4468e4a9534d6be99e4a6da06ae29",  # 2025-11-04
    "tensorflow_backend": "c13c2d120d457698282686b74b92c230f456846a",  # 2025-02-03, the last
    "tensorrt_backend": "e2ef6d790ba82283450e8993f04ebbf213e49c5b",  # 2026-07-17
}

_RAPIDS_TRITON = "18df2acb208097380a30dc6812affd0b6baf1c69"  # v26.06.00, the library that `fil` is written with
_TREELITE = "454abc4bfe03e6e9d45155c15f74ae36d8c73111"  # 4.1.2, the library that reads tree models for `fil`


def server(path: str, first: int, last: int) -> str:
    """Lines of triton-inference-server/server."""
    return f"{_GITHUB}/server/blob/{_SERVER}/{path}#L{first}-L{last}"


def core(path: str, first: int, last: int) -> str:
    """Lines of triton-inference-server/core."""
    return f"{_GITHUB}/core/blob/{_CORE}/{path}#L{first}-L{last}"


def backend(repository: str, path: str, first: int, last: int) -> str:
    """Lines of a backend's repository, for example triton-inference-server/python_backend."""
    return f"{_GITHUB}/{repository}/blob/{_BACKENDS[repository]}/{path}#L{first}-L{last}"


def rapids_triton(path: str, first: int, last: int) -> str:
    """Lines of rapidsai/rapids-triton."""
    return f"https://github.com/rapidsai/rapids-triton/blob/{_RAPIDS_TRITON}/{path}#L{first}-L{last}"


def treelite(path: str, first: int, last: int) -> str:
    """Lines of dmlc/treelite."""
    return f"https://github.com/dmlc/treelite/blob/{_TREELITE}/{path}#L{first}-L{last}"


def core_commit(digest: str) -> str:
    """A commit of triton-inference-server/core, for what a release changed."""
    return f"{_GITHUB}/core/commit/{digest}"


def release_notes(version: str) -> str:
    """NVIDIA's notes of a version of the server, such as 2.75.0."""
    return f"{_GITHUB}/server/releases/tag/v{version}"
