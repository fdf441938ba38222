"""The methods of moto that are replaced: each exists in the pinned moto, and each is listed with its reason."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib import import_module, metadata
from typing import TYPE_CHECKING

import pytest

from cdk_triton.errors import LocalError
from cdk_triton_local import moto_state
from cdk_triton_local.moto_state.corrections import correct_moto
from cdk_triton_local.moto_state.patching import replace_method

if TYPE_CHECKING:
    from golden_messages import Messages

BACKEND = "moto.applicationautoscaling.models.ApplicationAutoscalingBackend"


def listed() -> list[str]:
    """The full names in the docstring of the package."""
    names = re.findall(r"^\* `(moto\.\S+|\.\S+)`: ", str(moto_state.__doc__), re.MULTILINE)
    return [f"{BACKEND}{name}" if name.startswith(".") else name for name in names]


def replaced() -> Iterator[str]:
    """The methods of moto's classes that are functions of the local AWS."""
    for name, module in list(sys.modules.items()):
        if name.startswith("moto."):
            for owner in vars(module).values():
                if isinstance(owner, type) and owner.__module__ == name:
                    for method, value in vars(owner).items():
                        if str(getattr(value, "__module__", "")).startswith(f"{moto_state.__name__}."):
                            yield f"{name}.{owner.__qualname__}.{method}"


@pytest.mark.parametrize("name", listed())
def test_the_pinned_moto_has_every_method_that_is_replaced(name: str) -> None:
    module, owner, method = name.rsplit(".", 2)
    assert hasattr(getattr(import_module(module), owner, None), method), (
        f"moto {metadata.version('moto')} does not have {name}. Find out how moto does this now, then change or "
        "remove the correction in local_aws/cdk_triton_local/moto_state."
    )


def test_the_docstring_lists_what_is_replaced_and_nothing_else() -> None:
    correct_moto()
    assert sorted(replaced()) == sorted(listed())


def test_a_second_call_changes_nothing() -> None:
    from moto.s3.models import FakeBucket

    correct_moto()
    before = FakeBucket.get_permission
    correct_moto()
    assert FakeBucket.get_permission is before


def test_a_method_that_moto_does_not_have_is_an_error_with_its_name(messages: Messages) -> None:
    from moto.s3.models import FakeBucket

    with pytest.raises(LocalError) as caught:
        replace_method(FakeBucket, "allows", lambda original: original)
    installed, text = f"moto {metadata.version('moto')}", str(caught.value)
    assert installed in text
    assert "moto.s3.models.FakeBucket.allows" in text
    messages.record("LocalError", text.replace(installed, "moto VERSION"))
