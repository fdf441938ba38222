"""A whole build: a plan goes in, finished ensembles and the reasons of failed ones come out."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from inotify_simple import INotify, flags
from tests.gpu_build.conftest import SOURCES

from cdk_triton_local.triton.backends.plan import onnx_in_plan

if TYPE_CHECKING:
    from golden_messages import Messages


def outputs(build: Any) -> list[str]:
    """What is in the output folder."""
    return sorted(path.relative_to(build.out).as_posix() for path in build.out.rglob("*"))


@pytest.mark.slow
def test_an_ensemble_is_built_and_what_only_the_build_reads_is_left_out(build: Any, network: Any) -> None:
    key = build.add("text")

    code, log = build.run()

    assert code == 0, log
    assert outputs(build) == [key, f"{key}/build.json", f"{key}/model.tar.gz"]
    with tarfile.open(build.out / key / "model.tar.gz") as archive:
        plan = archive.extractfile("tiny/1/model.plan")
        assert plan is not None
        assert onnx_in_plan(plan.read(), name="model.plan")
        assert [entry.name for entry in archive if entry.isfile()] == [
            "ensemble/1/.keep",
            "ensemble/config.pbtxt",
            "tiny/1/model.plan",
            "tiny/config.pbtxt",
        ]
    report = build.report(key)
    assert report["stand_ins"] == ["nvidia-smi", "trtexec"]
    assert report["probed"]["tensorrt"] == "10.13.3.9"
    (step,) = report["steps"]
    (profile,) = step["parity"]["profiles"]
    assert (profile["inputs"], [figures["name"] for figures in profile["outputs"]]) == (
        {"x": [2, 4], "ids": [2, 1]},
        ["y"],
    )
    assert [output["path"] for output in step["outputs"]] == ["tiny/1/model.plan"]
    assert report["inputs"] == {"tiny/tiny.onnx": hashlib.sha256(network()).hexdigest()}
    assert step["commands"][0][:2] == ["trtexec", "--onnx=tiny/tiny.onnx"]
    assert str(build.out.parent) not in json.dumps(report)
    assert "not for children" not in json.dumps([report, log])
    assert len({line["event"] for line in log} & {"started", "probed", "step finished", "finished"}) == 4


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "is_compared"), [(2, True), (64, False)])
def test_the_inputs_may_be_the_users_own(
    messages: Messages, build: Any, tensorrt_step: Any, rows: int, is_compared: bool
) -> None:
    data = io.BytesIO()
    np.savez(data, x=np.full((rows, 4), 0.5, np.float32), ids=np.ones((rows, 1), np.int32))
    step = tensorrt_step()
    parity = {**step["parity"], "data": "tiny/inputs.npz"}
    files = {**SOURCES, "tiny/inputs.npz": data.getvalue()}
    key = build.add("text", files, steps=[{**step, "parity": parity}], remove=["tiny/tiny.onnx", "tiny/inputs.npz"])
    code, log = build.run()
    assert (code == 0) is is_compared, log
    if not is_compared:
        messages.record("failure.json", build.failure(key)["reason"])
        return
    (compared,) = build.report(key)["steps"][0]["parity"]["profiles"]
    assert compared["inputs"] == {"x": [2, 4], "ids": [2, 1]}


@pytest.mark.slow
def test_libraries_with_plugins_are_loaded_for_the_build_and_for_each_run(build: Any, tensorrt_step: Any) -> None:
    files = {**SOURCES, "tiny/libnms.so": b"a library, which the stand-in does not load"}
    key = build.add("text", files, steps=[tensorrt_step(parity=None, plugins=["tiny/libnms.so"])])
    code, log = build.run()
    assert code == 0, log
    commands = build.report(key)["steps"][0]["commands"]
    assert {command[1] for command in commands} == {"--staticPlugins=tiny/libnms.so"}
    assert [command[2].partition("=")[0] for command in commands] == ["--onnx", "--loadEngine"]


@pytest.mark.slow
def test_the_same_plan_gives_the_same_archive_again(messages: Messages, build: Any, tensorrt_step: Any) -> None:
    key = build.add("text", steps=[tensorrt_step(parity=None)])

    archives = []
    for _ in range(2):
        code, _ = build.run()
        assert code == 0
        archives.append(build.report(key)["archive"])
        assert outputs(build) == [key, f"{key}/build.json", f"{key}/model.tar.gz"]

    assert archives[0] == archives[1]
    parity = build.report(key)["steps"][0]["parity"]
    assert parity["checked"] is False
    messages.record("build.json", parity["reason"])


def test_a_broken_network_fails_its_ensemble_and_no_other(messages: Messages, build: Any) -> None:
    sources = {"tiny/config.pbtxt": b"", "tiny/tiny.onnx": b"\x08\x08no network"}
    broken, good = build.add("broken", sources), build.add("good", {"tiny/config.pbtxt": b""}, steps=[], remove=[])

    code, _ = build.run()

    assert code == 1
    assert build.failure(broken)["repository"] == "broken"
    messages.record("failure.json", build.failure(broken)["reason"])
    assert any("Failed to parse onnx file" in line for line in build.failure(broken)["log"])
    assert build.report(good)["archive"]["size"] > 0


@pytest.mark.slow
def test_inputs_that_config_pbtxt_has_otherwise_fail_the_build(
    messages: Messages, build: Any, tensorrt_step: Any
) -> None:
    wide = {"name": "ids", "data_type": "TYPE_INT64", "dims": [-1, 1]}
    half = {"name": "y", "data_type": "TYPE_FP16", "dims": [-1, 4]}
    inputs = tensorrt_step()["inputs"]
    in_type = build.add("in type", steps=[tensorrt_step(inputs=[inputs[0], wide], parity=None)])
    out_type = build.add("out type", steps=[tensorrt_step(outputs=[half], parity=None)])

    code, _ = build.run()

    assert code == 1
    # (trtexec takes a file of twice the size.)
    for key in (in_type, out_type):
        messages.record("failure.json", build.failure(key)["reason"])


@pytest.mark.slow
def test_a_plan_that_computes_something_else_fails_the_build_with_the_figures(
    messages: Messages, build: Any, write_tool: Any
) -> None:
    key = build.add("text")
    # A double for a trtexec whose plan is wrong: the real stand-in, then zeros in place of the answer.
    real = build.environment["PATH"].split(":")[0]
    write_tool("trtexec", f'{real}/trtexec "$@" || exit 1; for f in *.output.*; do head -c 32 /dev/zero > $f; done')

    code, _ = build.run()

    assert code == 1
    messages.record("failure.json", build.failure(key)["reason"])


@pytest.mark.slow
def test_the_speed_that_trtexec_prints_is_in_the_report(build: Any, write_tool: Any) -> None:
    key = build.add("text")
    # A double for the trtexec of a GPU: the real stand-in, which does not say so, with the summary of NVIDIA's sources.
    real = build.environment["PATH"].split(":")[0]
    write_tool(
        "trtexec",
        f'case " $* " in *" --warmUp=200 --duration=3 "*)\n'
        "echo '[11/30/2026-11:00:00] [I] Throughput: 812.5 qps'\n"
        "echo '[11/30/2026-11:00:00] [I] Latency: min = 1.2 ms, median = 1.3 ms, percentile(99%) = 1.9 ms';;\n"
        f"esac\n{real}/trtexec \"$@\" | grep -v 'cdk-triton stand-in'",
    )

    code, log = build.run()

    assert code == 0, log
    (step,) = build.report(key)["steps"]
    latency = {"min": 1.2, "median": 1.3, "p99": 1.9}
    assert step["speed"] == [{"inferences_per_second": 812.5, "latency_milliseconds": latency}]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tensorrt", "flags", "option"),
    [
        # Without raw files, and with the words of that time.
        ("8.5.3.1", ["--buildOnly"], "--exportOutput"),
        # Where nothing is copied back from the GPU unless it is asked for.
        ("11.1.0.106", ["--skipInference"], "--includeDataTransfers"),
    ],
)
def test_each_generation_of_tensorrt_is_asked_in_its_own_words(
    build: Any, tensorrt_step: Any, tensorrt: str, flags: list[str], option: str
) -> None:
    build.environment["CDK_TRITON_STAND_IN_TENSORRT"] = tensorrt
    build.plan["platform"]["tensorrt"] = tensorrt
    shapes = [flag for flag in tensorrt_step()["flags"] if "Shapes" in flag]
    step = tensorrt_step(flags=flags + shapes, tensorrt_major=int(tensorrt.split(".")[0]))
    key = build.add("text", steps=[step])

    code, log = build.run()

    assert code == 0, log
    assert build.report(key)["steps"][0]["parity"]["profiles"][0]["outputs"][0]["max_absolute_error"] < 1e-3
    assert any(option in argument for command in build.report(key)["steps"][0]["commands"] for argument in command)


@pytest.mark.slow
def test_several_profiles_are_all_tried(build: Any, tensorrt_step: Any, network: Any) -> None:
    first = tensorrt_step()["profiles"][0]
    second = {
        name: {"min": [9, *dims], "opt": [10, *dims], "max": [16, *dims]} for name, dims in [("x", [4]), ("ids", [1])]
    }
    flags = ["--skipInference", "--profile=0", *tensorrt_step()["flags"][2:], "--profile=1"]
    flags += ["--minShapes=ids:9x1,x:9x4", "--optShapes=ids:10x1,x:10x4", "--maxShapes=ids:16x1,x:16x4"]
    key = build.add("text", steps=[tensorrt_step(flags=flags, profiles=[first, second])])

    code, log = build.run()

    assert code == 0, log
    tried = [profile["inputs"]["x"] for profile in build.report(key)["steps"][0]["parity"]["profiles"]]
    assert tried == [[2, 4], [10, 4]]


@pytest.mark.slow
def test_a_network_that_turns_out_to_be_static_is_built_without_shapes(
    build: Any, tensorrt_step: Any, network: Any
) -> None:
    sources = {"tiny/config.pbtxt": b"", "tiny/tiny.onnx": network(dims=(2, 4))}
    # Inputs as the server takes them from the plan: the network itself is asked.
    step = tensorrt_step(flags_if_static=["--skipInference"], inputs=[], outputs=[])
    key = build.add("text", sources, steps=[step])

    code, log = build.run()

    assert code == 0, log
    commands = build.report(key)["steps"][0]["commands"]
    assert [sum("Shapes" in argument for argument in command) for command in commands[:2]] == [3, 0]


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        pytest.param("CDK_TRITON_STAND_IN_GPU", "NVIDIA L4", id="GPU"),
        pytest.param("CDK_TRITON_STAND_IN_COMPUTE_CAPABILITY", "8.9", id="compute capability"),
    ],
)
def test_another_machine_than_the_plan_was_made_for_is_rejected_before_any_work(
    messages: Messages, build: Any, variable: str, value: str
) -> None:
    build.add("text")
    build.environment[variable] = value

    code, log = build.run()

    assert code == 2
    messages.record("failure.json", build.failure()["reason"])
    assert outputs(build) == ["failure.json"]
    assert not any(line["event"] == "ensemble started" for line in log)


def test_files_from_s3_are_put_into_the_repository(messages: Messages, build: Any) -> None:
    content = b"weights"
    digest = hashlib.sha256(content).hexdigest()
    (build.folder / "inputs").mkdir()
    (build.folder / "inputs" / digest).write_bytes(content)
    entry = {"path": f"inputs/{digest}", "sha256": digest, "to": "tiny/1/weights.bin"}
    wrong = {**entry, "sha256": "0" * 64}
    good = build.add("good", {"tiny/config.pbtxt": b""}, inputs=[entry], steps=[], remove=[])
    bad = build.add("bad", {"tiny/config.pbtxt": b""}, inputs=[wrong], steps=[], remove=[])

    code, _ = build.run()

    assert code == 1
    with tarfile.open(build.out / good / "model.tar.gz") as archive:
        assert "tiny/1/weights.bin" in archive.getnames()
    messages.record("failure.json", build.failure(bad)["reason"])


def test_a_directory_appears_in_the_output_with_all_that_is_in_it(messages: Messages, build: Any) -> None:
    done = build.add("done", {"tiny/config.pbtxt": b""}, steps=[], remove=[])
    failed = build.add("failed", {"tiny/config.pbtxt": b""}, steps=[], remove=["missing"])
    build.out.mkdir()
    with INotify() as inotify:
        inotify.add_watch(build.out, flags.CREATE | flags.MOVED_TO)

        build.run()

        appeared = [(event.name, event.mask & flags.MOVED_TO) for event in inotify.read(timeout=0)]
    assert {name for name, _ in appeared} >= {done, failed}
    assert all(moved for _, moved in appeared)
    messages.record("failure.json", build.failure(failed)["reason"])


def test_a_step_for_another_tensorrt_fails_its_ensemble_and_no_other(
    messages: Messages, build: Any, tensorrt_step: Any
) -> None:
    """A caller of a publisher writes the steps of an ensemble, and one build has a batch of ensembles."""
    other = build.add("other", steps=[tensorrt_step(tensorrt_major="99")])
    good = build.add("good", {"tiny/config.pbtxt": b""}, steps=[], remove=[])

    code, _ = build.run()

    assert code == 1
    messages.record("failure.json", build.failure(other)["reason"])
    assert build.report(good)["archive"]["size"] > 0


def test_a_recipe_that_the_program_does_not_know_is_named(messages: Messages, build: Any) -> None:
    key = build.add("text", steps=[{"recipe": "quantum", "name": "the thing of tiny"}])

    code, _ = build.run()

    assert code == 1
    messages.record("failure.json", build.failure(key)["reason"])


def test_a_surprise_before_any_work_is_told_too(messages: Messages, build: Any) -> None:
    build.add("text")
    build.plan["platform"]["tensorrt"] = 10  # no text, which nobody checks

    code, _ = build.run()

    assert code == 2
    messages.record("failure.json", build.failure()["reason"])
    assert outputs(build) == ["failure.json"]
