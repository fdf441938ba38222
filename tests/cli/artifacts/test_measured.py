"""What `doctor --app` and `estimate --app` say of the figures of rehearsals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.artifacts.conftest import key_of

from cdk_triton import ServingPlatform
from cdk_triton.artifacts.publisher_description import PUBLISHER_METADATA, PublisherDescription
from cdk_triton.artifacts.served_repositories import SERVED_METADATA
from cdk_triton.protocol import layout
from cdk_triton.protocol.catalogue import Change, Entry, Version
from cdk_triton.protocol.plan import BuildInput, BuildMachine
from cdk_triton.triton import ContainerEnvironment

if TYPE_CHECKING:
    from tests.cli.artifacts.conftest import World

    from golden_messages import Messages

SUBJECT = "rehearsals of the app"
PLATFORM = {"release": "25.09", "instance_type": "ml.g5.xlarge"}
RATE = ["--requests-per-second", "10", "--price-per-hour", "1"]
REQUESTS = [*RATE, "--shape", "9-10=30, else=1", "--policy", "min=1 max=4 safety_factor=0.7"]


def memory(mib: float) -> dict[str, Any]:
    """The memory of a pass: so much by the server, beside 300 MiB of others."""
    return {"gpu": {"before": 300.0, "peak": 300.0 + mib}}


@pytest.fixture
def app(tmp_path: Path) -> Any:
    """Writes a cloud assembly with one model, whose ensembles have passed the rehearsals with their names."""

    def write(
        mode: str, *ensembles: str, timeout: int | None = None, publisher: PublisherDescription | None = None
    ) -> str:
        passes = {name: layout.pass_key(name, key_of(name), key_of(name)) for name in ensembles}
        served = {"mode": mode, "platform": PLATFORM, "passes": passes, "minutes": {"builds": 0, "rehearsals": 1}}
        variant = {
            "VariantName": "v",
            "InitialInstanceCount": 1,
            "InstanceType": "ml.g5.xlarge",
            "ModelName": {"Fn::GetAtt": ["ModelResource", "ModelName"]},
            **({} if timeout is None else {"ContainerStartupHealthCheckTimeoutInSeconds": timeout}),
        }
        configuration = {"ProductionVariants": [variant]}
        endpoint = {"EndpointConfigName": {"Fn::GetAtt": ["Config", "EndpointConfigName"]}}
        described = {} if publisher is None else {PUBLISHER_METADATA: publisher.document()}
        template = {
            "Resources": {
                "Config": {"Type": "AWS::SageMaker::EndpointConfig", "Properties": configuration},
                "Endpoint": {"Type": "AWS::SageMaker::Endpoint", "Properties": endpoint},
            }
            | (
                {}
                if publisher is None
                else {"Machine": {"Type": "AWS::StepFunctions::StateMachine", "Metadata": described}}
            )
        }
        stack = {
            "type": "aws:cloudformation:stack",
            "environment": "aws://unknown-account/unknown-region",
            "properties": {"templateFile": "t.json", "stackName": "Search"},
            "metadata": {
                **({"/Search/Model": [{"type": SERVED_METADATA, "data": served}]} if ensembles else {}),
                "/Search/Model/Resource": [{"type": "aws:cdk:logicalId", "data": "ModelResource"}],
            },
        }
        (tmp_path / "manifest.json").write_text(json.dumps({"artifacts": {"Search": stack}}))
        (tmp_path / "t.json").write_text(json.dumps(template))
        return str(tmp_path)

    return write


@pytest.fixture
def said(run: Any, messages: Messages) -> Any:
    """What the doctor says of rehearsals, which is recorded."""

    def call(app: str) -> list[str]:
        lines = run("doctor", "--app", app).out.splitlines()
        begins = [number for number, line in enumerate(lines) if f"  {SUBJECT}: " in line]
        found = []
        for number in begins:
            more = next((n for n in range(number + 1, len(lines)) if not lines[n].startswith("    ")), len(lines))
            found.append(" ".join(line.strip() for line in lines[number:more]))
        for each in found:
            messages.record("cdk-triton doctor", each)
        return found

    return call


@pytest.mark.slow
@pytest.mark.parametrize(
    ("timeout", "begins", "ends"),
    [
        (None, "ok", "and an instance has 480 s to start"),
        (300, "warning", "set container_startup_timeout=Duration.seconds(420) of the variant"),
    ],
    ids=["enough", "too short"],
)
def test_the_doctor_compares_the_time_to_load_with_the_timeout(
    timeout: int | None, begins: str, ends: str, app: Any, said: Any, world: World
) -> None:
    world.rehearse("text", key_of("text"), "text", load_seconds=190.0, memory=memory(2000.0))

    load, used = said(app("single", "text", timeout=timeout))

    assert load.startswith(begins)
    assert "Search/Model: the models took 190 s to load" in load
    assert load.endswith(ends)
    assert used.endswith("its models used 2,000 MiB of the 22,888 MiB of a GPU (24 GB)")


@pytest.mark.slow
def test_the_doctor_counts_the_ensembles_that_fit_into_a_gpu(app: Any, said: Any, world: World) -> None:
    for name, mib in (("small", 2000.0), ("large", 16000.0), ("other", 16000.0)):
        world.rehearse(name, key_of(name), name, load_seconds=mib / 400, memory=memory(mib))

    load, fit = said(app("multi", "small", "large", "other", "not-rehearsed"))

    assert load.startswith("warning")
    assert "it may fail for 'large', 'other'" in load
    assert "about 2 of the 3 ensembles that were rehearsed fit into a GPU at once: they used 34,000 MiB" in fit


@pytest.mark.slow
@pytest.mark.parametrize("own", [(), ("small",)], ids=["published ones only", "with one of the app"])
def test_the_figures_of_published_ensembles_count(own: tuple[str, ...], app: Any, said: Any, world: World) -> None:
    machine = BuildMachine("codebuild", 60, {}, BuildInput(None, "", ""))
    platform = ServingPlatform(**PLATFORM)
    publisher = PublisherDescription(
        "Model", "search", platform, ContainerEnvironment(), 8, builder=machine, rehearse=True
    )
    for name, mib in (("small", 2000.0), ("large", 16000.0), ("gone", 16000.0), ("elsewhere", 16000.0)):
        world.rehearse(name, key_of(name), name, load_seconds=mib / 400, memory=memory(mib))
    change = Change("2026-11-01T12:00:00+00:00", "p", "e")
    for fleet, name, gone in (("search", "large", None), ("search", "gone", change), ("other", "elsewhere", None)):
        version = Version(f"{name}.tar.gz", key_of(name), key_of(name), name, change, rehearsal=key_of(name))
        entry = Entry(fleet, name, (version,), gone)
        world.put(layout.catalogue_key(fleet, platform.label, name), entry.text())

    load, fit = said(app("multi", *own, publisher=publisher))

    assert load.startswith("warning")
    assert "Search/Model: its ensembles took up to 40 s to load" in load
    assert "it may fail for 'large'" in load
    assert ("all 2 ensembles fit into a GPU at once: they used 18,000 MiB" if own else "used 16,000 MiB") in fit


@pytest.mark.slow
@pytest.mark.parametrize("rehearse", [True, False])
def test_a_publisher_of_another_version_matters_only_if_it_rehearses(app: Any, run: Any, rehearse: bool) -> None:
    machine = BuildMachine("codebuild", 60, {}, BuildInput(None, "", "")) if rehearse else None
    platform = ServingPlatform(**PLATFORM)
    publisher = PublisherDescription(
        "Model", "search", platform, ContainerEnvironment(), 8, builder=machine, rehearse=rehearse
    )
    directory = app("multi", publisher=publisher)
    template = Path(directory, "t.json")
    template.write_text(template.read_text().replace('"schema": 1', '"schema": 2'))

    estimated = run("estimate", *REQUESTS, "--app", directory)

    said = "another version of cdk-triton has written the publisher of Search: run `cdk synth` again"
    assert (said in " ".join(estimated.err.replace("│", "").split())) == rehearse
    assert (estimated.status != 0) == rehearse


@pytest.mark.slow
def test_figures_of_stand_ins_are_not_used(app: Any, said: Any, run: Any, world: World) -> None:
    world.rehearse("text", key_of("text"), "text", load_seconds=190.0, stand_ins=["serve"], memory=memory(2000.0))
    directory = app("single", "text", timeout=60)

    assert said(directory) == []
    assert "Search/Model" not in run("estimate", *REQUESTS, "--app", directory).out


@pytest.mark.slow
def test_an_estimate_adds_the_measured_time_to_load(app: Any, run: Any, world: World) -> None:
    world.rehearse("text", key_of("text"), "text", load_seconds=190.0, memory=memory(2000.0))
    directory = app("single", "text")

    estimated = run("estimate", *REQUESTS, "--app", directory, "--format", "json")
    later, default = (run("estimate", *REQUESTS, "--start-up", each, "--format", "json") for each in ("11", "8"))

    document = json.loads(estimated.out)
    assert "Search/Model: its models took 190 s to load in a rehearsal" in document["notes"]
    rows = [json.loads(each.out)["estimates"][-1] for each in (estimated, later, default)]
    assert rows[0] == rows[1] != rows[2]  # 7 minutes and 4
