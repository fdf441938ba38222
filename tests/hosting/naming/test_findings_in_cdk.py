"""What the checks found, as the unmodified CDK CLI shows it."""

from __future__ import annotations

import os
import re
import subprocess
import textwrap
from typing import TYPE_CHECKING

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Annotations, Match

from cdk_triton import ModelRepository, TritonModel, TritonMultiModel, assert_no_errors

if TYPE_CHECKING:
    from tests.hosting.conftest import World

    from golden_messages import Messages

MISSPELT = 'platfrom: "onnxruntime_onnx"\n'
APP = """
import sys
import aws_cdk as cdk
from cdk_triton import ModelRepository, ServingPlatform, TritonEndpoint, TritonMultiModel

directory, below = sys.argv[1:]
app = cdk.App(builtin_cloud_formation_validation=False)  # which takes most of the time
scope = cdk.Stage(app, "Production") if below == "stage" else app
stack = cdk.Stack(scope, "Text")
fleet = TritonMultiModel(
    stack,
    "Fleet",
    platform=ServingPlatform(release="25.09", instance_type="ml.g5.xlarge"),
    ensembles={"text": ModelRepository.from_directory(directory)},
)
TritonEndpoint(stack, "Endpoint", model=fleet)
app.synth()
"""


def synth(world: World, below: str, repository: ModelRepository, *flags: str) -> subprocess.CompletedProcess[str]:
    """`cdk synth` of an app with one fleet, at the top level or below a Stage."""
    (world.directory / "app.py").write_text(textwrap.dedent(APP))
    cli = world.root / "node_modules" / ".bin" / "cdk"
    return subprocess.run(
        [cli, "synth", "--quiet", "--no-notices", *flags, "--app", f"python app.py {repository.root} {below}"],
        cwd=world.directory,
        env={**os.environ, "PATH": f"{world.root / '.venv' / 'bin'}:{os.environ['PATH']}", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    ("below", "where"), [("app", "Text/Fleet"), ("stage", "Production/Text/Fleet")], ids=["app", "stage"]
)
def test_an_error_ends_cdk_synth_with_a_sentence(world: World, below: str, where: str) -> None:
    done = synth(world, below, world.repository(network=MISSPELT))
    output = done.stdout + done.stderr

    assert done.returncode == 1, output
    assert where in output
    assert "text (" in output
    assert "network/config.pbtxt" in output
    assert "platfrom" in output
    # Nobody waits for gigabytes to be packed for a synthesis that fails.
    assert not list(world.directory.glob("cdk.out/*.tar.gz"))

    assert "CT101" in output


def archives(world: World) -> int:
    return len(list(world.directory.glob("cdk.out/**/asset.triton-*.tar.gz")))


@pytest.mark.parametrize("below", ["app", "stage"])
def test_a_good_repository_passes(world: World, below: str) -> None:
    done = synth(world, below, world.repository())

    assert done.returncode == 0, done.stdout + done.stderr
    assert archives(world) == 1


@pytest.mark.parametrize(
    ("below", "where", "selected"),
    [("app", "Text/Fleet", ()), ("stage", "Production/Text/Fleet", ("Production/*",))],
    ids=["app", "stage"],
)
def test_a_warning_passes_and_is_shown_until_it_is_acknowledged(
    world: World, below: str, where: str, selected: tuple[str, ...]
) -> None:
    repository = world.repository()
    (repository.root / "network" / "02").mkdir()

    warned = synth(world, below, repository, *selected)
    output = warned.stdout + warned.stderr
    assert warned.returncode == 0, output
    assert f"text ({repository.root}): network/02: " in output
    assert f"   {where}\n   Acknowledge with 'Annotation::CT112'\n" in output

    (repository.root / "cdk-triton.toml").write_text('[acknowledge]\nCT112 = "kept for the record"\n')
    silent = synth(world, below, repository, *selected)
    output = silent.stdout + silent.stderr
    assert silent.returncode == 0, output
    assert "CT112" not in output
    assert archives(world) == 1  # the file is no part of the archive, whose name is still the same


def test_a_warning_carries_its_code_and_can_be_acknowledged(messages: Messages, world: World) -> None:
    def warnings(name: str, *acknowledged: str) -> list[str]:
        repository = world.repository(name)
        (repository.root / "ensemble" / "1" / ".gitkeep").unlink()
        stack = cdk.Stack(world.app(name), "Stack")
        for code in acknowledged:
            cdk.Annotations.of(stack).acknowledge_warning(code, "checked")
        repository = type(repository).from_directory(repository.root)
        TritonModel(stack, "Model", repository=repository, platform=world.platform)
        found = Annotations.from_stack(stack).find_warning("/Stack/Model", Match.any_value())
        return [str(warning.entry.data) for warning in found]

    (warning,) = warnings("first")
    messages.record("CT111", warning)
    assert "ensemble/1: " in warning
    assert "[ack: CT111]" in warning
    assert warnings("second", "CT111") == []


def repository_of_openvino(world: World, name: str) -> ModelRepository:
    root = world.repository(name).root
    for model in ("preprocess", "network"):
        config = root / model / "config.pbtxt"
        config.write_text(re.sub('(backend|platform): "[^"]*"', 'backend: "openvino"', config.read_text()))
        for file in ("model.xml", "model.bin"):
            (root / model / "1" / file).touch()
    return ModelRepository.from_directory(root)


def test_what_no_rule_read_is_an_info_message_for_each_repository(messages: Messages, world: World) -> None:
    stack = cdk.Stack(world.app(), "Stack")
    ensembles = {name: repository_of_openvino(world, name) for name in ("first", "second")}
    ensembles["read"] = world.repository("read")
    TritonMultiModel(stack, "Fleet", ensembles=ensembles, platform=world.platform)

    infos = Annotations.from_stack(stack).find_info("/Stack/Fleet", Match.any_value())
    texts = [str(each.entry.data) for each in infos]
    assert [text.partition(" (")[0] for text in texts] == ["first", "second"]
    messages.record("cdk-triton:NotRead", texts[0].replace(str(ensembles["first"].root), "DIR"))
    assert "preprocess/1/model.xml" in texts[0]
    assert "network/1/model.xml" in texts[0]


def test_what_no_rule_read_of_many_repositories_is_one_info_message(messages: Messages, world: World) -> None:
    stack = cdk.Stack(world.app(), "Stack")
    ensembles = {f"tenant-{number:02}": repository_of_openvino(world, f"tenant-{number:02}") for number in range(11)}
    TritonMultiModel(stack, "Fleet", ensembles=ensembles, platform=world.platform)

    (info,) = Annotations.from_stack(stack).find_info("/Stack/Fleet", Match.any_value())
    text = str(info.entry.data)
    messages.record("cdk-triton:NotRead", text.replace(str(ensembles["tenant-00"].root), "DIR"))
    assert "parts of 11 repositories" in text
    assert "the first is tenant-00" in text


def test_every_ensemble_is_checked_and_all_errors_are_told_at_once(world: World) -> None:
    stack = cdk.Stack(world.app(), "Stack")
    bad = {name: world.repository(name, network=MISSPELT) for name in ("first", "second")}
    TritonMultiModel(stack, "Fleet", ensembles=bad, platform=world.platform)

    errors = Annotations.from_stack(stack).find_error("/Stack/Fleet", Match.any_value())
    texts = [str(error.entry.data) for error in errors]
    for name in bad:
        assert any(text.startswith(f"{name} (") and "platfrom" in text for text in texts)


def test_what_is_wrong_with_a_shared_repository_is_told_once(world: World) -> None:
    stack = cdk.Stack(world.app(), "Stack")
    shared = world.repository(network=MISSPELT)
    TritonMultiModel(stack, "Fleet", ensembles=dict.fromkeys(("one", "two", "three"), shared), platform=world.platform)

    errors = Annotations.from_stack(stack).find_error("/Stack/Fleet", Match.any_value())
    texts = [str(error.entry.data) for error in errors if "platfrom" in str(error.entry.data)]
    assert len(texts) == 1
    assert texts[0].startswith(f"one and 2 more ({shared.root}): ")


def test_an_apps_own_test_asserts_that_there_are_no_errors(messages: Messages, world: World) -> None:
    app = world.app()
    sound, bad = cdk.Stack(app, "Sound"), cdk.Stack(app, "Bad")
    TritonModel(sound, "Model", repository=world.repository("sound"), platform=world.platform)
    TritonModel(bad, "Model", repository=world.repository("bad", network=MISSPELT), platform=world.platform)

    assert_no_errors(sound)
    with messages.raises(AssertionError) as caught:
        assert_no_errors(bad)
    assert "/Bad/Model: " in str(caught.value)


def test_a_finding_about_the_whole_repository_names_it_once(world: World) -> None:
    repository = world.repository("mixed")
    (repository.root / "ensemble/config.pbtxt").unlink()
    repository = type(repository).from_directory(repository.root)
    stack = cdk.Stack(world.app(), "Stack")
    TritonMultiModel(stack, "Fleet", ensembles={"mixed": repository}, platform=world.platform)

    errors = Annotations.from_stack(stack).find_error("/Stack/Fleet", Match.any_value())
    texts = [str(error.entry.data) for error in errors]
    assert texts
    assert all(text.startswith(f"mixed ({repository.root}): ") for text in texts)
    assert not any(".:" in text for text in texts)
