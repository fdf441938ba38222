"""The Treelite in the backend `fil` of each release, and what it reads."""

from __future__ import annotations

from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton.releases import release_order

__all__ = ["reads_checkpoint", "requirements_of", "treelite_of"]

# Release → the Treelite from it on: cmake/thirdparty/get_treelite.cmake of each branch of fil_backend.
_VERSIONS = {
    "22.05": (2, 3, 0),
    "22.07": (2, 4, 0),
    "22.11": (3, 0, 0),
    "23.01": (3, 0, 1),
    "23.06": (3, 2, 0),
    "23.11": (3, 9, 1),
    "24.03": (4, 0, 0),
    "24.05": (4, 1, 2),
    "24.09": (4, 3, 0),
    "24.11": (4, 4, 0),
    "25.01": (4, 4, 1),
    "26.01": (4, 6, 1),
    "26.06": (4, 7, 0),
}
_LAST_READ = "26.06"  # the newest branch of fil_backend


def treelite_of(platform: ServingPlatform | None) -> tuple[int, ...] | None:
    """The version of Treelite that reads models in the release.

    None if the release is unknown or newer than the table, or if the image is not SageMaker's.
    """
    if platform is None or platform.release is None or platform.image is not None:
        return None
    served = release_order(platform.release)
    if served > release_order(_LAST_READ):
        return None
    return next((each for since, each in reversed(_VERSIONS.items()) if served >= release_order(since)), None)


def requirements_of(treelite: tuple[int, ...]) -> str:
    """What to install for a version of Treelite, as pip takes it.

    Before 4.0, its wheels import `treelite_runtime` without requiring it, and cannot convert models with numpy 2.
    """
    version = ".".join(map(str, treelite))
    before_4 = f", treelite_runtime=={version} and numpy<2" if treelite[0] < 4 else ""
    return f"treelite=={version}{before_4}"


def reads_checkpoint(reader: tuple[int, ...], writer: tuple[int, ...]) -> bool:
    """Whether a Treelite reads the checkpoints of another.

    Before 3.0, the versions had to be equal. 3.x reads from 2.4 on, and 4.x also reads 3.9 (dmlc/treelite:
    `DeserializeHeaderAndCreateModel` in src/serializer.cc of 4.x, `DeserializeTemplate` in tree_impl.h of 3.x).
    """
    if reader[0] < 3:
        return reader == writer
    if reader[0] == 3:
        return writer[0] == 3 or writer[:2] == (2, 4)
    return writer[0] == reader[0] or writer[:2] == (3, 9)
