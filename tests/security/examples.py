"""The apps of the examples, each in a directory of its own, with repositories that need no prepared weights."""

from __future__ import annotations

import importlib
import importlib.util
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from tests.hosting.conftest import ROOT, World
from tests.hosting.test_example_app import load, write_checkout, write_repositories
from tests.security.everything import add_everything


def example_app(world: World) -> cdk.App:
    checkout = write_checkout(world)
    shutil.rmtree(checkout / "model_assets")
    write_repositories(world)
    app = world.app("cdk.out.example")
    load(checkout).add_stacks(app)
    return app


def every_option(world: World) -> cdk.App:
    app = world.app("cdk.out.options")
    add_everything(world, app)
    return app


def pipeline_stages(world: World) -> cdk.App:
    """What a pipeline deploys, to an account that builds and to one that promotes; the pipeline itself is CDK's."""
    module = program("pipeline_app", ROOT / "examples" / "pipeline_app.py")
    prepared = shutil.ignore_patterns("*.onnx", "vendor", "tokenizer.json")
    ensemble = world.directory / "model_assets" / "sentence_embedding"
    shutil.copytree(ROOT / "model_assets" / "sentence_embedding", ensemble, ignore=prepared)
    (ensemble / "tokenizer" / "1" / "vendor" / "tokenizers").mkdir(parents=True)
    (ensemble / "tokenizer" / "1" / "vendor" / "tokenizers" / "__init__.py").write_text("")
    (ensemble / "tokenizer" / "1" / "tokenizer.json").write_text("{}")
    module.ASSETS = world.directory / "model_assets"
    tested: dict[str, Any] = {
        module.TESTED_BUCKET: "tested-artifacts",
        module.TESTED_KEY: "arn:aws:kms:eu-west-1:222222222222:key/1234abcd",
    }
    app = world.app("cdk.out.pipeline", **tested)
    module.Serving(app, "Test", module.TEST, read_by=module.LIVE.account)
    module.Serving(app, "Live", module.LIVE, promotes=True)
    return app


def platform_team(world: World) -> cdk.App:
    with pytest.MonkeyPatch.context() as during:
        during.syspath_prepend(ROOT / "examples" / "platform_team")
        acme = importlib.import_module("acme_triton")
    app = world.app("cdk.out.company")
    acme.AcmeEndpoint(cdk.Stack(app, "Search"), "Search", team="search", ensembles={"text": world.repository()})
    return app


def program(name: str, path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


EXAMPLES: dict[str, Callable[[World], cdk.App]] = {
    "`app.py`": example_app,
    "`pipeline_app.py`": pipeline_stages,
    "`platform_team`": platform_team,
    "every option": every_option,
}
