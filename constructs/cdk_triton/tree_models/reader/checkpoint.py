"""Treelite's checkpoints: the description of the model at the beginning (Treelite: src/serializer.cc).

All numbers are little-endian. An array is a count of 8 bytes and its elements, a text likewise. The description of
version 4 is followed by the trees, each a row of arrays. In versions 2.4 to 3.9, the description is the memory of two
structs, and a node is that of another (Treelite 3.9: include/treelite/tree_impl.h).
"""

from __future__ import annotations

import struct

from cdk_triton.tree_models.reader.forest import ONE_AGAINST_ALL, FileError, Forest

__all__ = ["checkpoint"]

_TASKS = ("binary classification", "regression", "multi-class classification", "ranking", "isolation forest")
_REGRESSION = 1
_ONE_AGAINST_ALL = "multiclass_ova"  # the name of LightGBM's objective as a postprocessor of Treelite
_TYPES = {1: 4, 2: 4, 3: 8}  # bytes of a threshold or a leaf: uint32, float32, float64


def checkpoint(content: bytes) -> Forest:
    """Read a checkpoint.

    Raises:
        FileError: the file is not a checkpoint, or incomplete.
    """
    try:
        version: tuple[int, ...] = struct.unpack_from("<3i", content)
        return _version_4(content, version) if version[0] >= 4 else _version_3(content, version)
    except struct.error:
        raise FileError("is not complete") from None


def _version_4(content: bytes, version: tuple[int, ...]) -> Forest:
    walk = _Walk(content, 12)
    threshold, leaf, trees, features, task, _, targets = walk.scalars("<BBQiB?i")
    (classes,) = walk.numbers() or (1,)
    walk.skip(4, 4, 4)  # leaf_vector_shape, target_id, class_id
    postprocessor = walk.text()
    forest = Forest(
        "treelite_checkpoint",
        f"Treelite {'.'.join(map(str, version))}",
        version,
        features or None,
        max(classes, 1),
        targets,
        ONE_AGAINST_ALL if postprocessor == _ONE_AGAINST_ALL else _TASKS[task] if task < len(_TASKS) else "",
        is_regression=task == _REGRESSION,
    )
    if threshold in _TYPES and leaf in _TYPES:
        _walk_trees(walk, trees, _TYPES[threshold], _TYPES[leaf])
    return forest


def _version_3(content: bytes, version: tuple[int, ...]) -> Forest:
    walk = _Walk(content, 12)
    # TaskParam has two bytes between grove_per_class and num_class.
    threshold, leaf, trees, features, _, _, _, _, classes, _ = walk.scalars("<BBQiB?B?2xII")
    writer = f"Treelite {'.'.join(map(str, version))}"
    forest = Forest("treelite_checkpoint", writer, version, features or None, max(classes, 1))
    if (version[0] == 3 or version[:2] == (2, 4)) and threshold in _TYPES and leaf in _TYPES:
        _walk_structs(walk, trees, _TYPES[threshold], _TYPES[leaf], has_more=version[0] == 3)
    return forest


def _walk_structs(walk: _Walk, trees: int, threshold: int, leaf: int, *, has_more: bool) -> None:
    """Step over the rest of the description, and over every tree: version 3 has fields for newer versions in both."""
    walk.scalars("<256s3f")  # ModelParam
    if has_more and walk.scalars("<i") != (0,):
        return  # fields of a newer version, whose sizes are unknown
    for _ in range(trees):
        walk.scalars("<i?")
        walk.skip(48 if threshold == 4 else 56, leaf, 8, 8, 4, 8)  # nodes, leaf vectors, categories
        if has_more and walk.scalars("<ii") != (0, 0):
            return


class _Walk:
    """A place in the file that moves over scalars and arrays."""

    def __init__(self, content: bytes, place: int) -> None:
        self._content = content
        self.place = place

    def scalars(self, kinds: str) -> tuple[int, ...]:
        found = struct.unpack_from(kinds, self._content, self.place)
        self.place += struct.calcsize(kinds)
        return found

    def numbers(self) -> tuple[int, ...]:
        """An array of int32; more than one class for each of several targets is one number: the first."""
        (count,) = self.scalars("<Q")
        end = self.place + count * 4
        if end > len(self._content):
            raise struct.error("the file ends within an array")
        found = struct.unpack_from(f"<{min(count, 1)}i", self._content, self.place)
        self.place = end
        return found

    def text(self) -> str:
        """An array of characters."""
        (count,) = self.scalars("<Q")
        end = self.place + count
        if end > len(self._content):
            raise struct.error("the file ends within a text")
        found = self._content[self.place : end]
        self.place = end
        return found.decode("latin-1")

    def skip(self, *sizes: int) -> None:
        """Step over arrays with elements of these sizes."""
        for size in sizes:
            (count,) = self.scalars("<Q")
            self.place += count * size
            if self.place > len(self._content):
                raise struct.error("the file ends within an array")


def _walk_trees(walk: _Walk, trees: int, threshold: int, leaf: int) -> None:
    """Step over the rest of the description, and over every tree, to see that the file is whole."""
    walk.scalars("<ff")  # sigmoid_alpha, ratio_c
    walk.skip(8, 1)  # base_scores, attributes
    if walk.scalars("<i") != (0,):
        return  # fields of a newer version, whose sizes are unknown
    nodes = (1, 4, 4, 4, 1, leaf, threshold, 1, 1)
    vectors = (leaf, 8, 8, 4, 8, 8)
    statistics = (8, 1, 8, 1, 8, 1)
    for _ in range(trees):
        walk.scalars("<i?")
        walk.skip(*nodes, *vectors, *statistics)
        if walk.scalars("<ii") != (0, 0):
            return
