"""The rule CT183: whether a Python model finds the files that it opens."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Literal

import pytest

if TYPE_CHECKING:
    from golden_messages import Messages
    from sample_repositories import Write

EXECUTE = "    def execute(self, requests): return []\n"
CLASS = "class TritonPythonModel:\n"
CALLER = "preprocess"
FOUND = ("CT183", f"{CALLER}/1/model.py", "")
FILES = {"1/words.txt": "cat", "labels.txt": "cat", "1/tokenizer/vocab.json": "{}"}


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
        "import codecs\ncodecs.open('words.txt', 'r', 'utf-8')",
        "from io import open\nopen('words.txt', encoding='utf-8')",
        "from transformers import AutoTokenizer\nAutoTokenizer.from_pretrained('./tokenizer')",
        f"from transformers import AutoTokenizer\nAutoTokenizer.from_pretrained('../{CALLER}/1/tokenizer/')",
        "import os\nos.listdir('1/tokenizer')",
    ],
)
def test_a_file_by_a_relative_path(messages: Messages, write: Write, line: str) -> None:
    files = {**FILES, "1/model.py": f"{line}\n{CLASS}{EXECUTE}"}
    repository = write({f"{CALLER}/{name}": text for name, text in files.items()})
    assert messages.of(repository.check()) == [("CT183", f"{CALLER}/1/model.py", "")]


@pytest.mark.parametrize(
    "line",
    [
        "open('other.txt')",
        "open('/etc/hostname')",
        "open('words.txt', 'w')",
        "open('words.txt', MODE)",
        "open('words.txt', **{'mode': 'w'})",
        "open('words.txt', 'w').write('cat')\nopen('words.txt')",
        "import io\nio.open('words.txt', 'w')",
        "import codecs\ncodecs.open('words.txt', encoding='utf-8', mode='w')",
        "import os\nos.chdir(os.path.dirname(__file__))\nopen('words.txt')",
        "from pathlib import Path\n(Path(__file__).parent / Path('words.txt')).read_text()",
        "def open(name): ...\nopen('words.txt')",
        "from helper import open\nopen('words.txt')",
        "if __name__ == '__main__':\n    open('words.txt')",
        "from transformers import AutoTokenizer\nAutoTokenizer.from_pretrained('tokenizer')",
        "import os\nos.listdir('.'), os.listdir('..')",
    ],
)
def test_a_file_that_may_be_found(write: Write, line: str) -> None:
    files = {**FILES, "1/model.py": f"MODE = 'r'\n{line}\n{CLASS}{EXECUTE}"}
    assert write({f"{CALLER}/{name}": text for name, text in files.items()}).check() == ()


HEAD = (
    "import os\nimport subprocess\nimport numpy as np\nimport torch\nfrom pathlib import Path\n"
    "from transformers import AutoTokenizer\n"
)


def opening(line: str, head: str = HEAD) -> dict[str, str]:
    files = {"1/model.py": f"{head}{CLASS}{EXECUTE}    def words(self, name):\n{textwrap.indent(line, ' ' * 8)}\n"}
    return {f"{CALLER}/{name}": text for name, text in {**FILES, **files}.items()}


ELSEWHERE = {
    "as in a container of ones own": f"open('/models/{CALLER}/1/words.txt')",
    "in a repository": f"open('/model_repository/{CALLER}/labels.txt', 'rb').read()",
    "in another directory": "open('/workspace/words.txt')",
    "of a home": "with open('/home/me/labels.txt', encoding='utf-8') as file: ...",
    "by a path": f"Path('/models/{CALLER}/1/words.txt').read_text()",
    "by parts": f"(Path('/models') / '{CALLER}' / 'labels.txt').open()",
    "joined": f"open(os.path.join('/models', '{CALLER}', '1', 'words.txt'))",
    "for numpy": f"np.load('/models/{CALLER}/1/words.txt')",
    "for torch": f"torch.load('/models/{CALLER}/1/words.txt', map_location='cpu')",
    "for TorchScript": f"torch.jit.load('/models/{CALLER}/1/words.txt')",
    "for a library": f"AutoTokenizer.from_pretrained('/models/{CALLER}/1/tokenizer')",
}


@pytest.mark.parametrize("mode", ["single", "multi"])
@pytest.mark.parametrize("line", ELSEWHERE.values(), ids=ELSEWHERE)
def test_a_file_by_a_path_of_another_machine(
    messages: Messages, write: Write, line: str, mode: Literal["single", "multi"]
) -> None:
    assert messages.of(write(opening(line)).check(mode=mode)) == [FOUND]


@pytest.mark.parametrize(
    ("path", "single"),
    [
        (f"{CALLER}/1/words.txt", []),
        (f"{CALLER}/1/tokenizer", []),
        (f"{CALLER}/../{CALLER}/labels.txt", []),
        (f"{CALLER}/1/wrods.txt", [FOUND]),
        ("words.txt", [FOUND]),
        (f"{CALLER}/2/labels.txt", [FOUND]),
    ],
)
def test_a_path_below_the_directory_of_the_archive(
    messages: Messages, write: Write, path: str, single: list[tuple[str, str, str]]
) -> None:
    repository = write(opening(f"open('/opt/ml/model/{path}')"))
    assert messages.of(repository.check()) == single
    assert messages.of(repository.check(mode="multi")) == [FOUND]


OF_THE_ENDPOINT = {
    "of the image": "open('/etc/labels.txt'), open('/usr/share/words.txt'), open('/opt/program/words.txt')",
    "of the kernel": "open('/proc/meminfo'), open('/dev/shm/words.txt')",
    "temporary": "open('/tmp/words.txt')",
    "unlike any": "open('/models/bert/weights.bin')",
    "written": f"open('/models/{CALLER}/1/words.txt', 'w')",
    "written by codecs": f"import codecs\ncodecs.open('/opt/ml/model/{CALLER}/1/log.txt', 'w', 'utf-8')",
    "tested": "if os.path.exists('/models/words.txt'):\n    open('/models/words.txt')",
    "in a tested directory": "if Path('/models').is_dir():\n    open('/models/words.txt')",
    "made": "subprocess.run(['ln', '-s', '/opt/ml/model', '/models'])\nopen('/models/labels.txt')",
    "written before": "open('/data/words.txt', 'w').write('cat')\nopen('/data/words.txt')",
    "tried": "try:\n    open('/models/words.txt')\nexcept OSError: ...",
    "computed": "open('/models/' + name), open(f'/models/{name}/words.txt'), open(name)",
}


@pytest.mark.parametrize("line", OF_THE_ENDPOINT.values(), ids=OF_THE_ENDPOINT)
def test_a_path_that_the_endpoint_may_have(write: Write, line: str) -> None:
    assert write(opening(line)).check() == ()


def initializing(body: str, head: str = HEAD, more: str = "") -> dict[str, str]:
    method = f"    def initialize(self, args):\n{textwrap.indent(body, ' ' * 8)}\n"
    return {f"{CALLER}/1/model.py": f"{head}{CLASS}{method}{more}{EXECUTE}", f"{CALLER}/1/words.txt": "cat"}


HERE = "here = os.path.dirname(os.path.abspath(__file__))\n"
NOWHERE = {
    "beside": "open(os.path.join(os.path.dirname(__file__), 'model.pkl'), 'rb')",
    "beside, in steps": f"{HERE}path = os.path.join(here, 'model.pkl')\nwith open(path, 'rb') as file: ...",
    "with an encoding": f"{HERE}open(os.path.join(here, 'model.txt'), encoding='utf-8')",
    "with all arguments": f"{HERE}open(os.path.join(here, 'model.txt'), 'r', 1, 'utf-8')",
    "misspelt": "(Path(__file__).parent / 'wrods.txt').read_text()",
    "in a resolved directory": "(Path(__file__).resolve(strict=True).parent / 'made.txt').open(mode='r')",
    "of the repository": "np.load(os.path.join(args['model_repository'], args['model_version'], 'weights.npy'))",
    "for torch": (
        "self.device = 'cuda' if torch.cuda.is_available() else 'cpu'\n"
        "torch.load(os.path.join(args['model_repository'], '1', 'model.pt'), map_location=self.device)"
    ),
    "for a library": "AutoTokenizer.from_pretrained(Path(__file__).parent / 'tokenizer')",
}


@pytest.mark.parametrize("body", NOWHERE.values(), ids=NOWHERE)
def test_a_file_that_is_nowhere(messages: Messages, write: Write, body: str) -> None:
    assert messages.of(write(initializing(body)).check()) == [FOUND]


READ = "open(os.path.join(os.path.dirname(__file__), 'made.txt'))"
SOMEWHERE = {
    "there": initializing(f"{HERE}open(os.path.join(here, 'words.txt'), encoding='utf-8')"),
    "made by a function": initializing(f"make()\n{READ}"),
    "made by a method": initializing(f"self.make()\n{READ}"),
    "made by a program": initializing(f"subprocess.run(['make'])\n{READ}"),
    "made by numpy": initializing(f"np.savetxt(os.path.dirname(__file__) + '/made.txt', [])\n{READ}"),
    "written": initializing(f"open(os.path.join(os.path.dirname(__file__), 'made.txt'), 'w')\n{READ}"),
    "written by a path": initializing(f"(Path(__file__).parent / 'made.txt').write_text('cat')\n{READ}"),
    "made before": initializing(READ, f"{HEAD}subprocess.run(['make'])\n"),
    "made by a helper": {**initializing(READ, f"{HEAD}import helper\n"), f"{CALLER}/1/helper.py": "make()\n"},
    "made by the constructor": initializing(READ, more="    def __init__(self): self.make()\n"),
    "tested": initializing(f"if os.path.exists('made.txt'):\n    {READ}"),
    "tried": initializing(f"try:\n    {READ}\nexcept FileNotFoundError: ..."),
    "of another directory": initializing("open(os.path.join('/tmp', 'made.txt'))"),
}


MADE = "made = Path(__file__).parent / 'made.txt'\n"
WRITES = {
    "text": "made.write_text('cat', encoding='utf-8')",
    "nothing": "made.touch(exist_ok=True)",
    "a directory": "made.mkdir(parents=True, exist_ok=True)",
    "an open file": "made.open(mode='w', encoding='utf-8')",
    "a file of io": "io.open(made, 'w', encoding='utf-8')",
    "a file of codecs": "codecs.open(str(made), 'w', 'utf-8')",
    "a mapped file": "np.memmap(made, dtype='uint8', mode='w+', shape=(3,))",
    "an open file, with options": "made.open(**{'mode': 'w'})",
    "a link": "made.symlink_to('words.txt', target_is_directory=False)",
    "a renamed file": "(Path(__file__).parent / 'words.txt').replace(made)",
    "a copied file": "(Path(__file__).parent / 'words.txt').copy(made, preserve_metadata=True)",
}
SOMEWHERE |= {
    f"written: {name}": initializing(f"{MADE}{line}\nmade.read_text(encoding='utf-8')", f"import codecs, io\n{HEAD}")
    for name, line in WRITES.items()
}


@pytest.mark.parametrize("files", SOMEWHERE.values(), ids=SOMEWHERE)
def test_a_file_that_may_be_somewhere(write: Write, files: dict[str, str]) -> None:
    assert [finding for finding in write(files).check() if finding.code == "CT183"] == []


READING = HEAD.replace("import subprocess\n", "")
BESIDE = {
    "by a path": "(Path(__file__).parent / 'made.txt').read_text()",
    "resolved": "open(Path(__file__).resolve().parent / 'made.txt')",
    "joined": "np.load(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'weights.npy'))",
    "above": "open(os.path.join(os.path.dirname(__file__), '..', 'made.txt'))",
    "in a directory": "(Path(__file__).parent / 'data' / 'made.txt').open()",
    "beside a download": "AutoTokenizer.from_pretrained('org/name')\nopen(Path(__file__).parent / 'made.txt')",
    "beside a text": "import json\njson.dumps({})\nopen(Path(__file__).parent / 'made.txt')",
}


@pytest.mark.parametrize("line", BESIDE.values(), ids=BESIDE)
def test_a_file_of_another_method_that_is_nowhere(messages: Messages, write: Write, line: str) -> None:
    assert messages.of(write(opening(line, READING)).check()) == [FOUND]


MAYBE = {
    "there": "open(Path(__file__).parent / 'words.txt'), (Path(__file__).parent.parent / 'labels.txt').open()",
    "elsewhere in the model": "open(Path(__file__).parent / 'labels.txt')",
    "of another model": "open(Path(__file__).parent.parent.parent / 'bert' / 'made.txt')",
    "downloaded": "from helpers import download\ndownload()\nopen(Path(__file__).parent / 'made.txt')",
    "downloaded by a library": (
        "AutoTokenizer.from_pretrained('org/name', cache_dir=Path(__file__).parent)\n"
        "open(Path(__file__).parent / 'made.txt')"
    ),
    "written": "open(Path(__file__).parent / 'made.txt', 'w')\nopen(Path(__file__).parent / 'made.txt')",
    "tested": "if os.path.exists('made.txt'):\n    open(Path(__file__).parent / 'made.txt')",
    "tried": "try:\n    open(Path(__file__).parent / 'made.txt')\nexcept OSError: ...",
    "computed": "open(Path(__file__).parent / name)",
}


@pytest.mark.parametrize("line", MAYBE.values(), ids=MAYBE)
def test_a_file_of_another_method_that_may_be_somewhere(write: Write, line: str) -> None:
    assert write(opening(line, READING)).check() == ()


HELPED = f"{READING}from helper import prepare\n"
MADE_BESIDE = "open(Path(__file__).parent / 'made.txt')"
PREPARE = "from pathlib import Path\ndef prepare(): (Path(__file__).parent / 'made.txt').write_text('cat')\n"
HELPERS = {
    "written": (MADE_BESIDE, HELPED, PREPARE),
    "named": (MADE_BESIDE, HELPED, "NAME = 'made.txt'\ndef prepare(): ...\n"),
    "copied": (
        f"open('/models/{CALLER}/1/words.txt')",
        HELPED,
        "import shutil\ndef prepare(): shutil.copytree('/opt/ml/model', '/models')\n",
    ),
    "in the working directory": (
        "open('labels.txt')",
        HELPED,
        "def prepare(): open('labels.txt', 'w').write('cat')\n",
    ),
    "imported under a condition": (
        MADE_BESIDE,
        f"{READING}try:\n    from helper import prepare\nexcept ImportError: ...\n",
        PREPARE,
    ),
}


@pytest.mark.parametrize(("line", "head", "helper"), HELPERS.values(), ids=HELPERS)
def test_a_file_that_a_helper_may_make(write: Write, line: str, head: str, helper: str) -> None:
    assert write({**opening(line, head), f"{CALLER}/1/helper.py": helper}).check() == ()


@pytest.mark.parametrize("line", [MADE_BESIDE, "open('labels.txt')", f"open('/models/{CALLER}/1/words.txt')"])
def test_a_file_that_no_helper_makes(messages: Messages, write: Write, line: str) -> None:
    files = {**opening(line, HELPED), f"{CALLER}/1/helper.py": "def prepare(): ...\n"}
    assert messages.of(write(files).check()) == [FOUND]
