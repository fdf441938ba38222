"""The layers of `cdk_triton.hosting`: a module imports from its own layer and from those below it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

PREFIX = "cdk_triton.hosting."

LAYERS = (
    "_cdk",  # plumbing, which belongs to no subject
    "assertions",  # for the tests of apps
    "name_prefix",
    "sagemaker_names",
    "acknowledgements",
    "findings",
    "runbooks",
    "own_bucket",
    "permissions",
    "keys",
    "trust",
    "images",
    "network",
    "vpc_endpoints",
    "capacity_reservations",
    "builds",
    "store",
    "publishing",
    "models",
    "instance_pools",
    "variant",
    "metrics",
    "scaling",
    "endpoint_variant",  # makes what scales it
    "monitoring",
    "endpoints",  # make what monitors them
    "components",  # share what endpoints check and grant
)
"""The modules and packages of `hosting`, from the lowest to the highest."""


def layer_of(module: str) -> int:
    """The layer of a module, or of a name in it, by its full name."""
    return LAYERS.index(module.removeprefix(PREFIX).partition(".")[0])


def test_every_module_of_hosting_has_its_layer(package: Path) -> None:
    found = {path.stem for path in (package / "hosting").iterdir() if path.suffix == ".py" or any(path.glob("*.py"))}
    assert found - {"__init__"} == set(LAYERS)


def test_no_import_within_hosting_goes_to_a_higher_layer(library_source: Any, package: Path) -> None:
    hosting = package / "hosting"
    # The package itself only names what it exports, lazily.
    if hosting not in library_source.path.parents or library_source.path == hosting / "__init__.py":
        return
    own = layer_of(library_source.path.relative_to(hosting).with_suffix("").parts[0])
    for name in sorted(library_source.imported()):
        assert name != PREFIX.rstrip("."), "imports the package, and with it every layer"
        if name.startswith(PREFIX):
            assert layer_of(name) <= own, f"imports {name}"
