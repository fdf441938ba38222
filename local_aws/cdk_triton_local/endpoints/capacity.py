"""How many instances of each type SageMaker has free, as `cdk-triton local capacity` sets it.

A type without a number has no limit. The numbers are in a file of the state directory, which every
deployment of an endpoint reads, so they also apply to a local AWS that is already running. Each deployment gets up to
that many instances. Running endpoints keep their instances, which do not count.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from cdk_triton.errors import LocalError

__all__ = ["Capacity"]


class Capacity:
    """The capacity of a state directory.

    Args:
        directory: the state directory; made when a number is set.
    """

    def __init__(self, directory: Path) -> None:
        self._file = directory / "capacity.json"

    def limits(self) -> Mapping[str, int]:
        """The instances that are free, by instance type; other types are not limited.

        Raises:
            LocalError: the file cannot be read.
        """
        try:
            found = json.loads(self._file.read_text(encoding="utf-8"))
            return {str(instance_type): int(count) for instance_type, count in found.items()}
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise LocalError(
                f"the capacity cannot be read from {self._file}: remove the file, and set the capacity again"
            ) from error

    def of(self, instance_type: str) -> int | None:
        """The instances of a type that are free; None: no limit."""
        return self.limits().get(instance_type)

    def set(self, instance_type: str, instances: int | None) -> None:
        """Set the number of free instances of an instance type; None removes the limit.

        Raises:
            LocalError: the file cannot be written.
        """
        limits = {**self.limits()}
        limits.pop(instance_type, None)
        if instances is not None:
            limits[instance_type] = instances
        partial = self._file.with_suffix(".partial")
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            partial.write_text(json.dumps(limits), encoding="utf-8")
            partial.replace(self._file)
        except OSError as error:
            raise LocalError(
                f"the capacity cannot be written to {self._file} ({error.strerror or error}): choose another directory "
                "with --directory, or repair this one"
            ) from error

    def clear(self) -> None:
        """Remove the limits of all instance types."""
        self._file.unlink(missing_ok=True)
