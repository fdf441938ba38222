"""The settings for comparing a built TensorRT plan with the network that it was built from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Final

from cdk_triton._arguments import one, require_type
from cdk_triton._tokens import reject_token
from cdk_triton.artifacts.recipes.values import literal, whole_number
from cdk_triton.errors import ConfigurationError
from cdk_triton.triton.rehearsal import Tolerance

__all__ = ["TOLERANCES", "Parity", "parity_document", "parity_parameters"]

_RANGES: Final = one(
    lambda value: isinstance(value, Mapping), "use a mapping from inputs to ranges, such as {'input_ids': (0, 30521)}"
)

_INT32_MAX: Final = 2**31 - 1


_TOLERANCE: Final = one(
    lambda value: isinstance(value, Tolerance), "write Tolerance(absolute=…, relative=…), or omit it"
)

TOLERANCES: Final[Mapping[str, Tolerance]] = MappingProxyType(
    {
        "fp32": Tolerance(1e-3, 5e-3),
        "fp16": Tolerance(1e-2, 2e-2),
        "strongly_typed": Tolerance(1e-2, 2e-2),
        "bf16": Tolerance(5e-2, 1e-1),
        "int8": Tolerance(1e-1, 2e-1),
    }
)
"""The tolerance for each precision, unless a recipe sets another one.

The tolerances are chosen to find a broken TensorRT plan, not to judge a good one. They start from these facts: FP16 has
10 bits of fraction, and BF16 has 7. On Ampere and newer, TensorRT computes FP32 as TF32, with 10 bits and sums in FP32
("TF32 is enabled by default", NVIDIA/TensorRT: samples/common/sampleOptions.cpp). One rounding is then off by up to
2^-11 or 2^-8; these are 10 (fp32), 40 (fp16) and 25 (bf16) of them, because errors add up over the layers. Polygraphy's
example for FP16 uses 1e-3 (tools/Polygraphy/examples/cli/convert/04_converting_models_to_fp16), for a small network.
INT8 depends on its calibration more than on anything else.
"""


@dataclass(frozen=True)
class Parity:
    """The comparison of a TensorRT plan with ONNX Runtime on the same inputs, in the job that builds the plan.

    Attributes:
        data: an `.npz` with an array for each input, relative to the model's directory, batch dimension included. The
            archive omits the file. None: random inputs, which show a broken plan but not the quality of a good one.
        tolerance: how far the outputs may differ. None: the tolerance of the recipe's precision in `TOLERANCES`.
        ranges: integer input → the smallest and largest value of its random inputs, both included. Other integer inputs
            get zeros and ones, because any other number may be outside a vocabulary.
        seed: the seed of the random numbers, at least 0.

    Raises:
        ConfigurationError: a range is not a pair of ascending whole numbers, the seed is not a whole number from 0 to
            2147483647, or both `ranges` and `data` are given.
    """

    tolerance: Tolerance | None = None
    ranges: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    seed: int = 0
    data: str | None = None

    def __post_init__(self) -> None:
        """Check the values."""
        whole_number(self.seed, "the seed of a Parity", 0, _INT32_MAX)
        if self.tolerance is not None:
            require_type("the tolerance of a Parity", self.tolerance, _TOLERANCE)
        require_type("the ranges of a Parity", self.ranges, _RANGES)
        if self.data is not None:
            literal(self.data, "the data of a Parity")
            if self.ranges:
                raise ConfigurationError(
                    f"a Parity has ranges and data={self.data!r}, but ranges are for random inputs: omit one of the two"
                )
        for name, bounds in self.ranges.items():
            literal(name, "the name of an input of a Parity")
            for bound in bounds if isinstance(bounds, tuple | list) else ():
                reject_token(bound, f"a bound of the range of the input {name!r}")
            if (
                not isinstance(bounds, tuple | list)
                or len(bounds) != 2
                or any(isinstance(bound, bool) or not isinstance(bound, int) for bound in bounds)
                or bounds[0] > bounds[1]
            ):
                raise ConfigurationError(
                    f"the range of the input {name!r} is {bounds!r} but must be two whole numbers in ascending order, "
                    "such as (0, 30521)"
                )
        ordered = {name: (self.ranges[name][0], self.ranges[name][1]) for name in sorted(self.ranges)}
        object.__setattr__(self, "ranges", ordered)


def parity_parameters(parity: Parity) -> dict[str, object]:
    """The comparison as the artifact key contains it, without a default tolerance, so that the default can change."""
    tolerance = None if parity.tolerance is None else asdict(parity.tolerance)
    return {"tolerance": tolerance, "ranges": _ranges(parity), "seed": parity.seed, **_data(parity.data)}


def parity_document(parity: Parity, precision: str, data: str | None) -> dict[str, object]:
    """The comparison as the step of a TensorRT plan of that precision contains it: JSON values.

    Args:
        parity: the comparison.
        precision: the precision of the plan.
        data: the path of `Parity.data` in the repository.
    """
    tolerance = TOLERANCES[precision] if parity.tolerance is None else parity.tolerance
    return {"tolerance": asdict(tolerance), "ranges": _ranges(parity), "seed": parity.seed, **_data(data)}


def _data(path: str | None) -> dict[str, object]:
    """Nothing without data, so that recipes without it keep their artifact keys."""
    return {} if path is None else {"data": path}


def _ranges(parity: Parity) -> dict[str, list[int]]:
    return {name: list(bounds) for name, bounds in parity.ranges.items()}
