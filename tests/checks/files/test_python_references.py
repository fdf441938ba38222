"""The rules CT182 and CT183: whether the models and files are there that a Python model names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest

if TYPE_CHECKING:
    from golden_messages import Messages
    from sample_repositories import Write

EXECUTE = "    def execute(self, requests): return []\n"
CLASS = "class TritonPythonModel:\n"
IMPORTS = "import triton_python_backend_utils as pb_utils\n"
CALL = f"{IMPORTS}{CLASS}    def execute(self, requests):\n        pb_utils.InferenceRequest(model_name=NAME).exec()\n"
ENDING = "        return []\n"
CALLER = "preprocess"


def calling(name: str, more: str = "") -> str:
    return CALL.replace("NAME", name) + more + ENDING


@pytest.mark.parametrize(
    ("name", "mode", "codes"),
    [
        pytest.param("'preproces'", "single", ["CT182"], id="misspelt"),
        pytest.param("'other'", "single", ["CT182"], id="unlike any"),
        pytest.param("'spare'", "single", ["CT182", "CT304"], id="never loaded"),
        pytest.param("'spare'", "multi", ["CT182", "CT304"], id="never loaded, among many"),
    ],
)
def test_a_model_that_is_not_loaded(
    messages: Messages, write: Write, name: str, mode: Literal["single", "multi"], codes: list[str]
) -> None:
    files = {f"{CALLER}/1/model.py": calling(name)}
    if "spare" in name:
        files |= {"spare/config.pbtxt": 'backend: "python"', "spare/1/model.py": CLASS + EXECUTE}
    assert [code for code, _, _ in messages.of(write(files).check(mode=mode))] == codes


@pytest.mark.parametrize(
    "source",
    [
        calling("'preprocess'"),
        calling("self.name"),
        calling("'other'", "        pb_utils.load_model(model_name='other')\n"),
        f"if __name__ == '__main__':\n    InferenceRequest(model_name='other')\n{CLASS}{EXECUTE}",
    ],
    ids=["a step", "a computed name", "a model that it loads", "as a program"],
)
def test_a_model_that_may_be_loaded(write: Write, source: str) -> None:
    assert write({f"{CALLER}/1/model.py": source}).check() == ()


def test_a_model_that_is_loaded_besides(write: Write) -> None:
    files = {"spare/config.pbtxt": 'backend: "python"', "spare/1/model.py": CLASS + EXECUTE}
    repository = write({**files, f"{CALLER}/1/model.py": calling("'spare'")})
    assert repository.check(additional_models=["spare"]) == ()


@pytest.mark.parametrize(
    "line",
    [
        "open('words.txt')",
        "open('./words.txt', 'rb')",
        "open('1/words.txt', mode='r')",
        f"open('{CALLER}/1/words.txt')",
        "open('labels.txt')",
        "__import__('pathlib').Path\nfrom pathlib import Path\nPath('words.txt').read_text()",
        "import pathlib\npathlib.Path('words.txt').open()",
    ],
)
def test_a_file_by_a_relative_path(messages: Messages, write: Write, line: str) -> None:
    files = {"1/model.py": f"{line}\n{CLASS}{EXECUTE}", "1/words.txt": "cat", "labels.txt": "cat"}
    repository = write({f"{CALLER}/{name}": text for name, text in files.items()})
    assert messages.of(repository.check()) == [("CT183", f"{CALLER}/1/model.py", "")]


@pytest.mark.parametrize(
    "line",
    [
        "open('other.txt')",
        "open('/etc/hostname')",
        "open('words.txt', 'w')",
        "open('words.txt', MODE)",
        "import os\nos.chdir(os.path.dirname(__file__))\nopen('words.txt')",
        "from pathlib import Path\n(Path(__file__).parent / Path('words.txt')).read_text()",
        "def open(name): ...\nopen('words.txt')",
        "from io import open\nopen('words.txt')",
        "if __name__ == '__main__':\n    open('words.txt')",
    ],
)
def test_a_file_that_may_be_found(write: Write, line: str) -> None:
    files = {"1/model.py": f"MODE = 'r'\n{line}\n{CLASS}{EXECUTE}", "1/words.txt": "cat"}
    assert write({f"{CALLER}/{name}": text for name, text in files.items()}).check() == ()
