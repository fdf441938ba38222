"""What the library promises to export is what there is."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from types import ModuleType

import pytest

import cdk_triton
import cdk_triton.artifacts
import cdk_triton.artifacts.recipes
import cdk_triton.checks
import cdk_triton.hosting
import cdk_triton.triton
import cdk_triton_local

PACKAGES = [
    "cdk_triton",
    *(
        module.name
        for module in pkgutil.iter_modules(cdk_triton.__path__, "cdk_triton.")
        if not module.name.rpartition(".")[2].startswith("_")
    ),
]

LAZY = [
    cdk_triton,
    cdk_triton.artifacts,
    cdk_triton.artifacts.recipes,
    cdk_triton.checks,
    cdk_triton.hosting,
    cdk_triton_local,
    cdk_triton.triton,
]


@pytest.fixture(params=PACKAGES)
def package(request: pytest.FixtureRequest) -> ModuleType:
    return importlib.import_module(request.param)


def public_names(package: ModuleType) -> list[str]:
    """Return the names that a package exports; `local` has none, it is used through the command."""
    return list(getattr(package, "__all__", []))


def test_every_public_name_exists_once(package: ModuleType) -> None:
    names = public_names(package)
    assert len(set(names)) == len(names)
    for name in names:
        assert getattr(package, name) is not None


def test_a_package_defines_no_public_name_beside_its_list(package: ModuleType) -> None:
    defined = {
        name
        for name, value in vars(package).items()
        if not name.startswith("_") and (inspect.isclass(value) or inspect.isfunction(value))
    }
    imported_for_use = {"lazy_names"} if "__getattr__" in vars(package) else set()
    assert defined - set(public_names(package)) <= imported_for_use


def test_every_package_behind_a_lazy_name_exports_it() -> None:
    for name in cdk_triton.__all__:
        value = getattr(cdk_triton, name)
        package = importlib.import_module(".".join(value.__module__.split(".")[:2]))
        assert getattr(package, name) is value
        assert name in package.__all__


@pytest.mark.parametrize("package", LAZY, ids=lambda package: package.__name__)
def test_a_package_whose_names_are_lazy_lists_them(package: ModuleType) -> None:
    assert dir(package) == sorted(package.__all__)


@pytest.mark.parametrize("package", LAZY, ids=lambda package: package.__name__)
def test_an_unknown_name_is_an_attribute_error(package: ModuleType) -> None:
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'TritonEndpiont'"):
        package.TritonEndpiont  # noqa: B018


def test_what_is_exported_is_documented(package: ModuleType) -> None:
    for name in public_names(package):
        value = getattr(package, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert inspect.getdoc(value), f"{package.__name__}.{name} has no docstring"
