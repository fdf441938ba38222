"""The verdict about a repository before it is published: keys as of a synth, errors, and what is remembered."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from inotify_simple import INotify, flags
from tests.cli.conftest import MODEL, PYTHON_MODEL

from cdk_triton import ModelRepository, ServingPlatform
from cdk_triton.artifacts import artifact_key, source_key
from cdk_triton.artifacts.prepare import prepared_document
from cdk_triton.artifacts.publisher_description import PublisherDescription
from cdk_triton.cli.fleet import verdicts
from cdk_triton.cli.fleet.manifest import Listed
from cdk_triton.cli.fleet.verdicts import judge
from cdk_triton.hosting.naming.construct_codes import CONSTRUCT_CODES
from cdk_triton.protocol.plan import BuildInput, BuildMachine
from cdk_triton.triton import ContainerEnvironment
from sample_repositories.onnx_graphs import TAKEN, graph

PLATFORM = ServingPlatform(release="25.09", instance_type="ml.g5.2xlarge")
PUBLISHER = PublisherDescription("Fleet", "fleet", PLATFORM, ContainerEnvironment(), 8)
LONG_AGO = (1_000_000_000, 1_000_000_000)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def repository(root: Path, name: str, config: str = MODEL) -> Listed:
    """A repository that nobody has written to for long."""
    model = root / "tenants" / name / "model"
    (model / "1").mkdir(parents=True)
    (model / "config.pbtxt").write_text(config)
    (model / "1" / "model.py").write_text(PYTHON_MODEL)
    for file in model.rglob("*"):
        os.utime(file, LONG_AGO)
    return Listed(name, model.parent)


def test_the_keys_are_those_of_a_synth(tmp_path: Path) -> None:
    (verdict,) = judge([repository(tmp_path, "acme")], PUBLISHER)
    found = ModelRepository.from_directory(tmp_path / "tenants" / "acme")
    assert (verdict.source_key, verdict.artifact_key) == (source_key(found), artifact_key(found, PLATFORM))
    assert verdict.repository == "acme"
    assert not verdict.errors


def test_a_repository_with_errors_is_rejected_and_the_others_are_not(tmp_path: Path) -> None:
    bad = repository(tmp_path, "bad", "max_batch_siz: 1")
    empty = Listed("empty", tmp_path)
    (tmp_path / "tenants" / "promised" / "model").mkdir(parents=True)
    promised = repository(tmp_path, "promising")
    (promised.directory / "cdk-triton.toml").write_text('produced = ["model/1/more.plan"]')
    nested = repository(tmp_path, "nested")
    (nested.directory / "cdk-triton.toml").write_text(f"acknowledge = {'[' * 500}")

    ensembles = [bad, empty, promised, nested, repository(tmp_path, "good")]
    found = {each.listed.ensemble: each for each in judge(ensembles, PUBLISHER)}

    assert [name for name, verdict in found.items() if not verdict.errors] == ["good"]
    assert found["bad"].errors[0].startswith("model/config.pbtxt:1:1: error CT101: ")
    (finding,) = found["promising"].findings
    assert (finding.code, finding.path) == ("cdk-triton:ProducedFile", "cdk-triton.toml")
    assert "model/1/more.plan" in finding.message
    assert "cdk-triton.toml nests" in found["nested"].errors[0]
    assert finding.code in {each.code for each in CONSTRUCT_CODES}


@pytest.mark.slow
def test_many_repositories_are_checked_in_several_processes_with_the_same_result(tmp_path: Path) -> None:
    many = [repository(tmp_path, f"tenant-{number}") for number in range(20)]
    done: list[int] = []
    found = judge(many, PUBLISHER, progress=done.append)
    assert [each.listed for each in found] == many
    assert done == list(range(21))
    assert {each.source_key for each in found} == {found[0].source_key}


def sharing_weights(tmp_path: Path) -> tuple[Path, list[Listed]]:
    """A large file, and three repositories that have it by hard links."""
    weights = tmp_path / "weights.bin"
    weights.write_bytes(bytes(2_000_000))
    os.utime(weights, LONG_AGO)
    tenants = [repository(tmp_path, name) for name in ("acme", "bravo", "charlie")]
    for each in tenants:
        (each.directory / "model" / "1" / "weights.bin").hardlink_to(weights)
    return weights, tenants


def test_a_file_that_repositories_share_is_read_once(tmp_path: Path) -> None:
    weights, tenants = sharing_weights(tmp_path)

    with INotify() as watch:
        watch.add_watch(weights, flags.OPEN | flags.CLOSE_NOWRITE)  # the inode, whatever its name
        verdicts = judge(tenants, PUBLISHER)
        opened = [event for event in watch.read(timeout=0) if event.mask & flags.OPEN]

    assert len(opened) == 1
    assert not [error for each in verdicts for error in each.errors]


def test_a_verdict_of_an_earlier_run_has_the_places_of_its_findings(tmp_path: Path) -> None:
    listed = repository(tmp_path, "acme", f"{MODEL}dynamic_batching {{\n  default_priority_level: 1\n}}\n")
    for _ in range(2):
        (verdict,) = judge([listed], PUBLISHER)
        line = len(MODEL.splitlines()) + 2
        assert verdict.warnings[0].startswith(f"model/config.pbtxt:{line}:3: warning CT235: dynamic_batching.")


def test_a_changed_directory_is_looked_at_again_even_if_it_is_empty(tmp_path: Path) -> None:
    listed = repository(tmp_path, "acme")
    model = listed.directory / "model"
    (model / "1" / "model.py").unlink()
    (model / "config.pbtxt").write_text('name: "model"\nplatform: "onnxruntime_onnx"')
    os.utime(model / "config.pbtxt", LONG_AGO)
    first = judge([listed], PUBLISHER)
    (model / "1").rename(model / "2")
    renamed = judge([listed], PUBLISHER)
    assert renamed != first
    assert renamed == judge([listed], PUBLISHER, recheck=True)


def test_an_unchanged_repository_is_not_looked_at_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ensembles = [repository(tmp_path, "acme")]
    first = judge(ensembles, PUBLISHER)
    read: list[Any] = []
    check = prepared_document

    def counting(*arguments: Any) -> Any:
        read.append(arguments)
        return check(*arguments)

    monkeypatch.setattr(verdicts, "prepared_document", counting)
    assert judge(ensembles, PUBLISHER) == first
    assert not read
    machine = BuildMachine("processing", 120, {}, BuildInput(None, "triton-program.pyz", "program.pyz"))
    judge(ensembles, replace(PUBLISHER, fleet="other", max_concurrency=9, max_builds=9, builder=machine))
    judge(ensembles, replace(PUBLISHER, is_next=True))
    assert not read
    judge(ensembles, PUBLISHER, recheck=True)
    assert len(read) == 1
    judge(ensembles, replace(PUBLISHER, environment=ContainerEnvironment(log_verbose=1)))
    assert len(read) == 2
    model = ensembles[0].directory / "model" / "1" / "model.py"
    model.write_text(f"{PYTHON_MODEL}# changed")
    os.utime(model, LONG_AGO)
    assert judge(ensembles, PUBLISHER)[0].keys != first[0].keys
    other = replace(PUBLISHER, platform=ServingPlatform(release="25.09", instance_type="ml.g6.xlarge"))
    assert judge(ensembles, other)[0].artifact_key != first[0].artifact_key


@pytest.mark.slow
def test_a_recheck_believes_no_digest_of_an_earlier_run(tmp_path: Path) -> None:
    """A tool may have changed a file and set everything back that shows it."""
    weights, tenants = sharing_weights(tmp_path)
    right = [each.artifact_key for each in judge(tenants, PUBLISHER)]
    change_cache(tmp_path, f"UPDATE kept SET value = '{'0' * 64}' WHERE kind = 'digest'")
    change_cache(tmp_path, "DELETE FROM kept WHERE kind = 'verdict'")
    assert [each.artifact_key for each in judge(tenants, PUBLISHER)] != right

    with INotify() as watch:
        watch.add_watch(weights, flags.OPEN | flags.CLOSE_NOWRITE)
        assert [each.artifact_key for each in judge(tenants, PUBLISHER, recheck=True)] == right
        assert len([event for event in watch.read(timeout=0) if event.mask & flags.OPEN]) == 1

    assert [each.artifact_key for each in judge(tenants, PUBLISHER)] == right


@pytest.mark.slow
def test_a_recheck_believes_no_verdict_on_a_network_of_an_earlier_run(tmp_path: Path) -> None:
    listed = Listed("acme", tmp_path / "tenants" / "acme")
    model = listed.directory / "model" / "1" / "model.onnx"
    model.parent.mkdir(parents=True)
    (model.parents[1] / "config.pbtxt").write_text('name: "model"\nplatform: "onnxruntime_onnx"\nmax_batch_size: 0')
    network = graph(TAKEN["sound"])
    network.doc_string = "long" * 5_000  # the cache has large files only
    model.write_bytes(network.SerializeToString())
    for file in listed.directory.rglob("*"):
        os.utime(file, LONG_AGO)
    before = judge([listed], PUBLISHER)[0].findings
    fault = {"kind": "value", "operator": "", "node": "", "output": "", "domain": "", "reason": "poison", "fix": ""}
    poison = json.dumps({"unjudged": "", "faults": [fault], "foreign": []})
    change_cache(tmp_path, f"UPDATE kept SET value = '{poison}' WHERE kind LIKE 'onnx graph%'")
    change_cache(tmp_path, "DELETE FROM kept WHERE kind = 'verdict'")
    assert "poison" in str(judge([listed], PUBLISHER)[0].findings)

    assert judge([listed], PUBLISHER, recheck=True)[0].findings == before


def change_cache(directory: Path, statement: str) -> None:
    (database,) = (directory / "cache" / "cdk-triton").glob("*.sqlite")
    with closing(sqlite3.connect(database)) as connection, connection:
        assert connection.execute(statement).rowcount > 0
