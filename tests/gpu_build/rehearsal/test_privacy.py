"""Text of a request is in no message and in no log of a job, whatever a model prints or raises."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from tests.gpu_build.rehearsal.rehearsing import Rehearse, asked

pytestmark = pytest.mark.server

TEXT = 'Grüße an die "Patientin" Ada Lovelace'
SAYS = "word = text.as_numpy()[0][0].decode()"
PIECES = ("Patient", "PATIENT", "Lovelace", "LOVELACE", "Gr", "GR")


@pytest.mark.parametrize(
    ("execute", "told"),
    [
        ("raise ValueError(f'unknown {text.as_numpy()}')", "ValueError (model/1/model.py, line 18)"),
        ("raise ValueError(f'unknown {text.as_numpy()[0][0][:14]}')", "ValueError (model/1/model.py, line 18)"),
        (f"{SAYS}; raise KeyError(ascii(word)[1:8])", "KeyError (model/1/model.py, line 18)"),
        (f"{SAYS}; import json; raise KeyError(json.dumps(word)[1:8])", "KeyError (model/1/model.py, line 18)"),
        (f"{SAYS}; raise ValueError(word.upper())", "ValueError (model/1/model.py, line 18)"),
        (f"{SAYS}; raise type('Mine', (Exception,), {{}})(word)", "an error (model/1/model.py, line 18)"),
        (
            f"{SAYS}; return pb_utils.InferenceResponse(error=pb_utils.TritonError(f'{{word}}: no (such, line 3)'))",
            "an error",
        ),
    ],
    ids=["repr", "a part", "ascii", "json", "upper case", "an exception of its own", "an error of Triton"],
)
def test_a_model_that_repeats_the_request(rehearsed: Rehearse, execute: str, told: str) -> None:
    log = StringIO()
    found = rehearsed(execute=f"print(text, flush=True); {execute}", requests=[(asked(1.0, TEXT), None)], printed=log)
    assert found["reason"] == (
        f"golden/0.json: the server answered with status 500: {told}, whose message may repeat the request"
    )
    logged = log.getvalue()
    assert "server_version" in logged  # what the server prints until the models are loaded
    assert not [piece for piece in PIECES if piece in logged.partition("server_version")[2]]


@pytest.mark.parametrize("private", [True, False])
def test_a_log_keeps_where_the_server_says_something(rehearsed: Rehearse, private: bool) -> None:
    log = StringIO()
    options: dict[str, Any] = {"private": private}
    requests = [(asked(1.0, TEXT), None)]
    rehearsed(execute="raise KeyError(text.as_numpy()[0][0])", requests=requests, printed=log, options=options)
    asked_for = log.getvalue().partition("server_version")[2]
    assert "KeyError" in asked_for
    assert ("Lovelace" in asked_for) is not private


def test_a_message_without_text_of_the_request_is_told(rehearsed: Rehearse) -> None:
    found = rehearsed(execute="raise ValueError('no such row')", requests=[(asked(1.0, "Ada"), None)])
    assert found["reason"].endswith("ValueError: no such row (model/1/model.py, line 18)")
