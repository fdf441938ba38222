"""What one rehearsal does with the real server: loads, answers, repeats, unloads, loads again, and leaves nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.gpu_build.rehearsal.rehearsing import CONFIG, Rehearse, answered, asked

pytestmark = pytest.mark.server

SEQUENCES = (
    CONFIG
    + """
sequence_batching {
  oldest {}
  control_input { name: "START" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } }
}
"""
)
SUMS = """
        start = pb_utils.get_input_tensor_by_name(request, "START").as_numpy()
        sums = self.__dict__.setdefault("sums", {})
        number = request.correlation_id()
        sums[number] = x[0][0] + (0.0 if start[0][0] else sums[number])
        time.sleep(0.005)
        y = np.array([[sums[number]]], np.float32)
"""


def test_a_rehearsal_says_what_the_models_need(rehearsed: Rehearse) -> None:
    budgets = {"load_seconds": 60.0, "gpu_memory_mib": 1.0, "p99_milliseconds": 0.001, "concurrency": 4}
    found = rehearsed(mode="multi", budgets=budgets, initialize="self.kept = np.ones(100 << 17)")
    assert found["reason"] is None
    assert 0 < found["second_load_seconds"] < 60
    assert found["latency"]["concurrency"] == 4
    assert found["latency"]["answers"] >= 4
    assert 0 < found["latency"]["p50_milliseconds"] <= found["latency"]["p99_milliseconds"]
    assert found["memory"]["gpu"] is None
    host, shared = found["memory"]["host"], found["memory"]["shared"]
    assert host["loaded"] > 100 > host["unloaded"] > host["before"] == host["after"] == 0
    assert host["peak"] >= host["loaded"]
    assert shared["peak"] <= shared["size"]  # other tests use it, too
    assert found["server"]["version"] == "2.51.0"
    assert [each.partition(":")[0] for each in found["skipped"]] == ["gpu_memory_mib", "p99_milliseconds"]
    assert set(found["differs"]) == {"role", "instance", "network", "driver"}


def test_each_client_has_its_own_sequences(rehearsed: Rehearse) -> None:
    steps = [
        (asked(1.0, sequence_id=7, sequence_start=True), answered(1.0)),
        (asked(2.0, sequence_id=7), answered(3.0)),
        (asked(3.0, sequence_id=7, sequence_end=True), answered(6.0)),
    ]
    found = rehearsed(config=SEQUENCES, execute=SUMS, requests=steps, budgets={"concurrency": 3})
    assert (found["reason"], found["latency"]["concurrency"]) == (None, 3)


RAISES_WITH_TEXT = "raise ValueError(f'no row {text.as_numpy()[0][0].decode()}')"
LOADS_ONCE = "mark = self.directory + '/mark'; assert not os.path.exists(mark), 'no'; open(mark, 'w').close()"
COMPLETES_DECOUPLED = """pass

    @staticmethod
    def auto_complete_config(config):
        config.set_model_transaction_policy({"decoupled": True})
        return config
"""
# The exception has several paragraphs: the types of all arguments, and then the values.
NUMBERED = "pb_utils.InferenceRequest(model_name='m', inputs=[], requested_output_names=[], request_id=1)"
SENT_AT_ONCE = "self.count = getattr(self, 'count', 0) + 1; assert self.count < 9, 'too many'"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"budgets": {"load_seconds": 0.01}}, "s to load, but the limit is 0.01 s: make them load faster"),
        (
            {"execute": RAISES_WITH_TEXT, "requests": [(asked(1.0, "Ada Lovelace"), None)]},
            "golden/0.json: the server answered with status 500: ValueError (model/1/model.py, line 18), whose message "
            "may repeat the request",
        ),
        (
            {"initialize": LOADS_ONCE, "mode": "multi"},
            "after it was unloaded: model 'search.tar.gz' does not load: AssertionError: no (model/1/model.py, line 9)",
        ),
        (
            {"execute": SENT_AT_ONCE, "budgets": {"concurrency": 2}},
            "AssertionError: too many (model/1/model.py, line 18), when 2 are sent at once",
        ),
        (
            {"execute": NUMBERED},
            "requested_output_names=[], request_id=1 (model/1/model.py, line 18)",
        ),
        ({"execute": "y = np.zeros((1, 2), np.float32)"}, "golden/0.json: "),
        (
            {"execute": "return pb_utils.InferenceResponse([])", "requests": [(asked(outputs=["y"]), None)]},
            "golden/0.json: the answer lacks the output 'y', and has none: the model has returned no tensor",
        ),
        ({"initialize": COMPLETES_DECOUPLED}, "golden/0.json: the model is decoupled, so it may have any number of"),
    ],
)
def test_a_failure_is_one_sentence(rehearsed: Rehearse, given: dict[str, Any], reason: str) -> None:
    found = rehearsed(**given)
    assert reason in str(found["reason"])


def test_a_model_finds_no_credentials(rehearsed: Rehearse, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "CODEBUILD_AGENT",
        "ECS_CONTAINER_METADATA_URI",
        "PIP_INDEX_URL",
        "GITHUB_TOKEN",
        "DATABASE_PASSWORD",
    ):
        monkeypatch.setenv(name, "secret")
    found = rehearsed(execute="assert 'secret' not in os.environ.values(), 'found'", environment={"MY_VARIABLE": "1"})
    assert found["reason"] is None


def test_a_child_that_a_model_has_detached_is_ended(rehearsed: Rehearse, tmp_path: Path) -> None:
    child = f"subprocess.Popen(['sleep', '4321'], start_new_session=True, env={{'MARK': {str(tmp_path)!r}}})"
    found = rehearsed(initialize=child)
    assert found["reason"] is None
    assert not [each for each in Path("/proc").glob("[0-9]*") if _is_marked(each, tmp_path)]


def _is_marked(process: Path, mark: Path) -> bool:
    try:
        return f"MARK={mark}".encode() in (process / "environ").read_bytes()
    except OSError:
        return False


def test_the_place_of_the_models_is_free_for_the_next_rehearsal(rehearsed: Rehearse, tmp_path: Path) -> None:
    assert rehearsed()["reason"] is None
    assert not (tmp_path / "root/opt/ml/model").exists()
