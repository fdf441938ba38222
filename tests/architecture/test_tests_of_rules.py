"""The tests of rules mirror the modules: tests/checks/files/test_onnx_models.py tests checks/files/onnx_models.py."""

from __future__ import annotations

from pathlib import Path

from cdk_triton import checks
from cdk_triton.checks import rules

PACKAGE = Path(checks.__file__).parent
TESTS = Path(__file__).parents[1] / "checks"


def test_each_module_with_rules_has_its_file_of_tests() -> None:
    modules = {rule.function.__module__.removeprefix("cdk_triton.checks.") for rule in rules()}
    files = (TESTS / area / f"test_{module}.py" for area, module in (name.split(".") for name in modules))
    assert [str(file) for file in files if not file.is_file()] == []


def test_each_file_of_tests_below_an_area_has_its_module() -> None:
    tests = [file.relative_to(TESTS) for file in TESTS.glob("*/**/*.py")]
    modules = {file: PACKAGE / file.with_name(file.name.removeprefix("test_")) for file in tests}
    assert tests
    assert [str(test) for test, module in modules.items() if not module.is_file()] == []
