"""Where the objects of the store lie: what is documented is what the plans say."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import aws_cdk as cdk
from tests.docs.blocks import of_kind

from cdk_triton import TritonArtifactStore, TritonModel, TritonMultiModel
from cdk_triton.artifacts import artifact_key, source_key
from cdk_triton.protocol import layout

if TYPE_CHECKING:
    from tests.hosting.conftest import World


(GUIDE,) = of_kind("hosting/store/test_store_layout.py")


def documented(text: str) -> list[str]:
    return [
        re.sub(r"\s+", " ", line.strip())
        for line in text.splitlines()
        if re.match(r"\s*(artifacts|fleets|staging)/", line)
    ]


def test_a_plan_puts_everything_where_it_is_documented(world: World) -> None:
    app = world.app()
    store = TritonArtifactStore(cdk.Stack(app, "Artifacts"), "Store")
    stack = cdk.Stack(app, "Stack")
    repository = world.repository("directory")
    fleet = TritonMultiModel(stack, "Fleet", store=store, ensembles={"text": repository}, platform=world.platform)
    plan = world.plan(app, world.only(stack, "Custom::TritonArtifacts"))

    words = {
        "repository": "directory",
        "artifact key": artifact_key(repository, world.platform),
        "fleet": fleet.name_in_store,
        "release": "25.09",
        "gpu": "a10g",
        "ensemble": "text",
        "source10": source_key(repository)[:10],
    }
    guide = documented(GUIDE.text)
    # What is staged is the handler's, sources are a publisher's, passes are of rehearsals, and files of another kind
    # of model.
    others = ("<path>", layout.SOURCES, "<rehearsal key>")
    lines = [line for line in guide if not line.startswith("staging/") and not any(each in line for each in others)]
    keys = [re.sub("<([^>]*)>", lambda word: words[word[1]], line).split()[0] for line in lines]
    (commit,), (copy,) = plan["commits"], plan["fleet"]["copies"]
    assert commit["repository"] == "directory"
    assert keys == [
        commit["archive"],
        commit["manifest"],
        copy["target"],
        plan["fleet"]["index"],
    ]


def test_a_plan_puts_files_where_it_is_documented(world: World) -> None:
    app = world.app()
    stack = cdk.Stack(app, "Stack")
    repository = world.repository("directory")
    TritonModel(stack, "Model", repository=repository, platform=world.platform, uncompressed=True)
    (commit,) = world.plan(app, world.only(stack, "Custom::TritonArtifacts"))["commits"]

    words = {
        "repository": "directory",
        "artifact key": artifact_key(repository, world.platform, uncompressed=True),
        "path": commit["files"][0]["path"],
    }
    guide = documented(GUIDE.text)
    (line,) = (line for line in guide if "<path>" in line)
    key = re.sub("<([^>]*)>", lambda word: words[word[1]], line).split()[0]
    assert key == commit["archive"] + commit["files"][0]["path"]


def test_a_model_with_another_id_leaves_the_old_one_what_it_may_read(world: World) -> None:
    """The way to rename a repository: while the endpoint is updated, the old role reads the old archive."""

    def policies(id: str, name: str) -> dict[str, object]:
        stack = cdk.Stack(world.app(id), "Stack")
        TritonModel(stack, id, repository=world.repository(name), platform=world.platform)
        found = world.policies(stack) | world.resources(stack, "AWS::IAM::Role")
        return {name: resource for name, resource in found.items() if name.startswith("Model")}

    assert not policies("Model", "old").keys() & policies("Model2", "new").keys()
