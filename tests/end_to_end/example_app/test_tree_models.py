"""Tree models of three tenants on one multi-model endpoint, deployed by the unmodified CLI and asked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.docs.blocks import of_kind

from examples.reference_systems.assets import ASSETS
from examples.reference_systems.questions import unseen_row
from examples.reference_systems.tree_models import TENANTS

(CALL,) = of_kind("end_to_end/example_app/test_tree_models.py")


@pytest.fixture(scope="module")
def outputs(deployed: Any) -> dict[str, str]:
    found: dict[str, str] = deployed("TreeModels")
    return found


@pytest.mark.parametrize("binary", [True, False], ids=["binary", "json"])
@pytest.mark.parametrize("tenant", TENANTS)
def test_each_tenant_gets_the_prediction_of_its_own_model(
    example_app: Any, outputs: dict[str, str], tenant: str, binary: bool
) -> None:
    with np.load(ASSETS / "tree_models" / tenant / "golden/prediction.npz", allow_pickle=False) as arrays:
        expected = arrays["output__0"]
    answer = example_app.ask(
        outputs["EndpointName"],
        "output__0",
        {"input__0": unseen_row(tenant)},
        target_model=outputs[f"{tenant.title()}Model"],
        binary=binary,
    )
    assert np.allclose(answer, expected, rtol=0, atol=1e-5)


def test_the_call_of_the_page_prints_the_class_of_its_comment(run_call: Any, outputs: dict[str, str]) -> None:
    assert run_call(CALL, outputs) == ["0"]
