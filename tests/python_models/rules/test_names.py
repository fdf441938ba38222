"""The rules CT169, CT175, CT176 and CT180: the names that Python models use."""

from __future__ import annotations

import ast
import re
import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from cdk_triton.python_models.reader.imports import needed
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import ContainerEnvironment

if TYPE_CHECKING:
    from golden_messages import Messages
    from sample_repositories import Change, Write

MODEL = "class TritonPythonModel:\n    def execute(self, requests):\n        return []\n"
UTILS = "import triton_python_backend_utils as pb_utils\n"
MODULE = "triton_python_backend_utils"
STAR = f"from {MODULE} import *\n"
IMAGE = f"example.com/triton@sha256:{'0' * 64}"
PATH = "model/1/model.py"


def platform(release: str) -> ServingPlatform:
    return ServingPlatform(release=release, instance_type="ml.g5.xlarge")


def model(source: str, **others: Change) -> dict[str, Change]:
    return {"model/config.pbtxt": 'backend: "python"', PATH: source, **others}


def executing(body: str, more: str = "") -> str:
    """A model with statements in `execute`."""
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    return f"{more}class TritonPythonModel:\n    def execute(self, requests):\n{lines}        return []\n"


@pytest.mark.parametrize(
    ("release", "source", "is_found"),
    [
        pytest.param("23.03", "from collections import Mapping", False, id="still in 3.8"),
        pytest.param("23.05", "from collections import Mapping", True, id="gone in 3.10"),
        pytest.param("25.09", "import collections\nX = collections.Mapping", True, id="an attribute"),
        pytest.param("25.09", "from datetime import UTC", False, id="there in 3.12"),
        pytest.param("24.09", "from datetime import UTC", True, id="new in 3.11"),
        pytest.param("24.09", "import datetime as d\nNOW = d.datetime.now(d.UTC)", True, id="with another name"),
        pytest.param("24.09", "from datetime import datetime\nX = datetime.UTC", False, id="an attribute of a class"),
        pytest.param("24.09", "E = ExceptionGroup", True, id="a built-in"),
        pytest.param("25.09", "E = ExceptionGroup", False, id="a built-in of 3.12"),
        pytest.param("24.09", "from asyncio import taskgroups", True, id="a module in a package"),
        pytest.param("25.09", "import numpy as np\nDTYPE = np.float", True, id="numpy"),
        pytest.param("24.09", "import numpy as np\nDTYPE = np.float", False, id="numpy may be old"),
        pytest.param("25.09", "import sqlite3\nX = sqlite3.version", False, id="deprecated in 3.12"),
        pytest.param("24.03", "from io import text_encoding", False, id="of io in 3.10"),
        pytest.param("24.03", "import sqlite3\nX = sqlite3.OptimizedUnicode", False, id="deprecated in 3.10"),
        pytest.param("25.09", "import numpy as np\nDTYPE = np.bool", False, id="numpy 2 has it again"),
        pytest.param("25.09", "import numpy as np\nnp.float = float\nDTYPE = np.float", False, id="set before"),
        pytest.param(
            "24.09", "try:\n    from datetime import UTC\nexcept ImportError:\n    UTC = None", False, id="caught"
        ),
        pytest.param(
            "24.09",
            "import collections\ntry:\n    X = collections.Mapping\nexcept AttributeError:\n    X = dict",
            False,
            id="an attribute that is caught",
        ),
        pytest.param(
            "24.09",
            "import sys\nif sys.version_info >= (3, 11):\n    from datetime import UTC",
            False,
            id="a condition",
        ),
        pytest.param("24.09", "import datetime\nUTC = lambda: datetime.UTC", False, id="later"),
        pytest.param("24.09", "import datetime\ndef f():\n    return datetime.UTC", False, id="nobody calls it"),
        pytest.param("24.09", "import sys\nsys.path.insert(0, '/opt/x')\nfrom datetime import UTC", False, id="path"),
        pytest.param("24.09", "import enum\nX = 1 < 0 and enum.StrEnum", False, id="a part of a condition"),
        pytest.param("24.09", "def f(enum):\n    return enum.StrEnum\nimport enum\nf(enum)", False, id="an argument"),
    ],
)
def test_each_python_has_its_own_names(
    messages: Messages, write: Write, release: str, source: str, *, is_found: bool
) -> None:
    findings = write(model(f"{source}\n{MODEL}"), base={}).check(platform=platform(release))
    assert messages.of(findings) == ([("CT169", PATH, "")] if is_found else [])


def test_the_type_behind_an_alias_of_numpy(messages: Messages, write: Write) -> None:
    findings = write(model(f"import numpy\nX = numpy.unicode\n{MODEL}"), base={}).check(platform=platform("25.09"))
    assert [finding.fix for finding in findings] == ["write 'str', Python's own type"]
    messages.of(findings)


@pytest.mark.parametrize(
    ("source", "owner"),
    [
        pytest.param("import numpy\nX = numpy.float", "numpy", id="numpy"),
        pytest.param("from collections import Mapping", "Python 3.12", id="Python"),
    ],
)
def test_the_release_tells_what_an_image_of_ones_own_has(
    messages: Messages, write: Write, source: str, owner: str
) -> None:
    own = replace(platform("25.09"), image=IMAGE)
    (finding,) = write(model(f"{source}\n{MODEL}"), base={}).check(platform=own)
    assert f"which {owner} of 25.09 (the release given for your image) does not have" in finding.message
    messages.of([finding])


def test_a_name_in_execute_is_used(write: Write) -> None:
    source = executing("for request in requests:\n    print(datetime.UTC)", "import datetime\n")
    findings = write(model(source), base={}).check(platform=platform("24.09"))
    assert [(finding.code, finding.line) for finding in findings] == [("CT169", 5)]


def test_names_are_not_judged_without_a_release_or_with_another_path(write: Write) -> None:
    repository = write(model(f"from datetime import UTC\n{MODEL}"), base={})
    assert repository.check() == ()
    environment = ContainerEnvironment(variables={"PYTHONPATH": "/opt/packages"})
    assert repository.check(platform=platform("24.09"), environment=environment) == ()


FUTURE = "from __future__ import annotations\n"


@pytest.mark.parametrize(
    ("source", "codes"),
    [
        pytest.param(f"{UTILS}E = pb_utils.TritonModelExeption\n{MODEL}", ["CT175"], id="misspelt"),
        pytest.param(f"{UTILS}class E(pb_utils.TritonModelException): ...\n{MODEL}", ["CT175"], id="a base class"),
        pytest.param(f"{UTILS}def f(x: pb_utils.Tensor): ...\n{MODEL}", ["CT175"], id="an annotation"),
        pytest.param(f"{UTILS}x: pb_utils.Tensor\n{MODEL}", ["CT175"], id="an annotation of a name"),
        pytest.param(f"{UTILS}def f(x=pb_utils.Tensor): ...\n{MODEL}", ["CT175"], id="a default"),
        pytest.param(f"from triton_python_backend_utils import Tensor\n{MODEL}", ["CT175"], id="imported at the top"),
        pytest.param(executing("pb_utils.Tenser('OUT', 1)", UTILS), ["CT175"], id="misspelt in execute"),
        pytest.param(
            executing("if requests:\n    raise pb_utils.TritonExeption()", UTILS), ["CT180"], id="under a condition"
        ),
        pytest.param(executing("if requests: pb_utils.Missing", UTILS), ["CT180"], id="like no other"),
        pytest.param(f"{UTILS}def f(): return pb_utils.Tenser\n{MODEL}", ["CT180"], id="in a function"),
        pytest.param(f"{FUTURE}{UTILS}def f(x: pb_utils.Tensor): ...\n{MODEL}", [], id="a lazy annotation"),
        pytest.param(f"{UTILS}def f(x: 'pb_utils.Tensor'): ...\n{MODEL}", [], id="an annotation as a string"),
        pytest.param(executing("x: pb_utils.Missing = 1", UTILS), [], id="an annotation that nobody evaluates"),
        pytest.param(f"{FUTURE}{UTILS}def f(x: pb_utils.Missing): ...\n{MODEL}", [], id="a lazy annotation of no name"),
        pytest.param(executing("pb_utils.Tensor('OUT', requests)", UTILS), [], id="in execute"),
        pytest.param(executing("from triton_python_backend_utils import Tensor"), [], id="imported in execute"),
        pytest.param(f"{UTILS}X = pb_utils.np.float32, pb_utils.ModelConfig\n{MODEL}", [], id="there from the start"),
        pytest.param(
            f"{UTILS}def f():\n    if hasattr(pb_utils, 'New'): return pb_utils.New\n{MODEL}", [], id="asked for"
        ),
        pytest.param(f"{UTILS}pb_utils.mine = 1\ndef f(): return pb_utils.mine\n{MODEL}", [], id="set"),
        pytest.param(f"{UTILS}def f(pb_utils): return pb_utils.mine\n{MODEL}", [], id="an argument"),
        pytest.param(f"{UTILS}X = pb_utils.__file__\n{MODEL}", [], id="of every module"),
        pytest.param(executing("Tensor('OUT', requests)", STAR), ["CT175"], id="not brought by a star"),
        pytest.param(executing("for r in requests:\n    InferenceResponse([])", STAR), ["CT175"], id="in a loop"),
        pytest.param(executing("[InferenceResponse([]) for r in requests]", STAR), ["CT180"], id="in a comprehension"),
        pytest.param(f"{STAR}class E(TritonModelException): ...\n{MODEL}", ["CT175"], id="a base class by a star"),
        pytest.param(executing("get_input_tensor_by_name(requests, 'IN'), np", STAR), [], id="brought by a star"),
        pytest.param(executing("Tensor", f"{STAR}from other import *\n"), [], id="two stars"),
        pytest.param(executing("Tensor = 1\nTensor", STAR), [], id="bound beside a star"),
    ],
)
def test_names_of_the_server(messages: Messages, write: Write, source: str, codes: list[str]) -> None:
    repository = write(model(source), base={})
    assert messages.of(repository.check()) == [(code, PATH, "") for code in codes]


@pytest.mark.parametrize(
    ("release", "name", "is_found"),
    [
        ("23.06", "load_model", True),
        ("23.07", "load_model", False),
        ("22.08", "Logger", True),
        ("22.09", "Logger", False),
    ],
)
def test_names_of_the_server_by_release(write: Write, release: str, name: str, *, is_found: bool) -> None:
    findings = write(model(executing(f"pb_utils.{name}", UTILS)), base={}).check(platform=platform(release))
    assert [finding.code for finding in findings if finding.code in ("CT175", "CT180")] == ["CT175"] * is_found


RAISES = executing("if len(requests) > 64:\n    raise TritonModelException('too many')", STAR)
APPENDS = "import os\nimport sys\nsys.path.append(os.path.join(os.path.dirname(__file__), 'vendor'))\n"


@pytest.mark.parametrize(
    ("source", "directory"),
    [
        pytest.param(executing("pb_utils.Tenser()", UTILS), "1", id="always"),
        pytest.param(executing("if requests:\n    pb_utils.Tenser()", UTILS), "1", id="under a condition"),
        pytest.param(RAISES, "1", id="by a star"),
        pytest.param(APPENDS + RAISES, "1/vendor", id="in a directory of its own"),
    ],
)
def test_a_file_of_the_model_hides_the_module_of_the_server(write: Write, source: str, directory: str) -> None:
    names = ("Tenser", "TritonModelException(Exception)", "ModelConfig")
    own = "".join(f"class {name}: ...\n" for name in names)
    own += "def deserialize_bytes_tensor(): ...\ndef serialize_byte_tensor(): ...\n"  # which the server needs (CT192)
    others = {f"model/{directory}/{MODULE}.py": own}
    assert write(model(source, **others), base={}).check() == ()


@pytest.mark.parametrize(("release", "codes"), [("22.07", ["CT180"]), ("26.07", ["CT180"]), ("26.08", [])])
def test_names_that_a_star_does_not_bring_by_release(write: Write, release: str, codes: list[str]) -> None:
    findings = write(model(RAISES), base={}).check(platform=replace(platform("25.09"), release=release, image=IMAGE))
    assert [finding.code for finding in findings if finding.code in ("CT175", "CT180")] == codes


UNDEFINED = {
    "at the top": f"X = np.zeros(1)\n{MODEL}",
    "in a class": f"class Text:\n    size: List[int] = []\n{MODEL}",
    "an annotation of a function": f"def f(x: List[int]) -> None: ...\n{MODEL}",
    "a decorator": f"@dataclass\nclass Text: ...\n{MODEL}",
    "a base class": f"class Text(BaseModel): ...\n{MODEL}",
    "in execute": executing("x = np.zeros(1)"),
    "for each request": executing("for request in requests:\n    x = np.zeros(1)"),
    "in a function that is called": executing("load()", "def load():\n    return json.loads('1')\n"),
    "misspelt": executing("x = SIZES", "SIZE = 1\n"),
    "another error is caught": f"try:\n    X = np\nexcept ValueError: ...\n{MODEL}",
}


@pytest.mark.parametrize("source", UNDEFINED.values(), ids=UNDEFINED)
def test_a_name_that_nothing_defines(messages: Messages, write: Write, source: str) -> None:
    assert messages.of(write(model(source), base={}).check()) == [("CT176", PATH, "")]


DEFINED = {
    "built in": "X = print, __file__, __name__, exit, len, NotImplemented\n",
    "in a class": "class Text:\n    size = 1\n    twice = size * 2\n    name = __qualname__\n",
    "by a loop": "for i in range(3): ...\nX = i\n",
    "by a handler": "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    print(error)\n",
    "by a walrus": "print(size := 3)\nX = size\n",
    "by a function": "def f():\n    global np\n    import numpy as np\nf()\nX = np\n",
    "by a star": "from math import *\nX = pi\n",
    "by globals": "globals()['np'] = 1\nX = np\n",
    "by exec": "exec('np = 1')\nX = np\n",
    "under a condition": "import sys\nif sys.argv:\n    unicode = str\nX = unicode\n",
    "caught": "try:\n    X = unicode\nexcept NameError:\n    X = str\n",
    "any error is caught": "try:\n    X = unicode\nexcept Exception:\n    X = str\n",
    "suppressed": "import contextlib\nwith contextlib.suppress(NameError):\n    X = unicode\n",
    "in a comprehension": "X = [i for i in range(3)]\n",
    "in a lambda": "X = lambda: np\n",
    "in a function that nobody calls": "def f(): return np\n",
    "in a generator that is called": "def f():\n    print(np)\n    yield 1\nf()\n",
    "a script": "if __name__ == '__main__':\n    print(np)\n",
    "a lazy annotation": "x = 1\n",
    "a matched name": "match 1:\n    case size: ...\nX = size\n",
    "a comparison that ends before": "X = 1 > 2 > np\n",
    "a message of an assertion": "assert True, np\n",
    "arguments": "def f(a, /, b, *c, d, **e):\n    print(a, b, c, d, e)\nf(1, 2, d=3)\n",
    "by another module": "import text\ntext.np = 1\n",
}


@pytest.mark.parametrize("source", DEFINED.values(), ids=DEFINED)
def test_names_that_are_defined(write: Write, source: str) -> None:
    assert write(model(source + MODEL, **{"model/1/text.py": ""}), base={}).check() == ()


GENERIC = {
    "a class": ("class Box:\n    value: T\n    def get(self, v: T = 1) -> T: return v\n", {"Box": "T"}),
    "a class in a class": ("class Box:\n    class Lid:\n        value: T\n", {"Box": "T"}),
    "a function": ("def f(x: T):\n    print(T, T.__name__)\nf(1)\n", {"f": "T"}),
    "a method": ("class Box:\n    def __init__(self):\n        print(K, V)\nBox()\n", {"Box": "K", "__init__": "V"}),
    "a method of a class": ("class Box:\n    def get(self):\n        print(T)\nBox.get(1)\n", {"Box": "T"}),
}


@pytest.mark.parametrize(("source", "parameters"), GENERIC.values(), ids=GENERIC)
def test_type_parameters_in_a_tree(source: str, parameters: dict[str, str]) -> None:
    module = ast.parse(source)
    for node in ast.walk(module):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name in parameters:
            vars(node)["type_params"] = [
                SimpleNamespace(name=parameters[node.name])
            ]  # what Python 3.12 and newer parse
    _, used, _ = needed(module, {}, "TritonPythonModel", lazy=False)
    assert not {each.name for each in used} & {"T", "K", "V"}


@pytest.mark.skipif(sys.version_info < (3, 12), reason="older Pythons do not parse type parameters")
@pytest.mark.parametrize(("source", "parameters"), GENERIC.values(), ids=GENERIC)
def test_type_parameters(write: Write, source: str, parameters: dict[str, str]) -> None:
    for name, parameter in parameters.items():
        source = re.sub(rf"(class|def) {name}\b", rf"\1 {name}[{parameter}]", source)
    assert write(model(f"{source}{MODEL}"), base={}).check(platform=platform("25.09")) == ()


def test_a_name_that_is_no_type_parameter_there() -> None:
    module = ast.parse("class Box: ...\nx: T\n")
    vars(module.body[0])["type_params"] = [SimpleNamespace(name="T")]
    _, used, _ = needed(module, {}, "TritonPythonModel", lazy=False)
    assert "T" in {each.name for each in used}


def test_a_name_that_another_module_sets(write: Write) -> None:
    others = {"model/1/text.py": "X = np.zeros(1)\n"}
    source = f"import numpy, words, text\nwords.np = numpy\n{MODEL}"
    assert write(model(source, **others, **{"model/1/words.py": ""}), base={}).check() == ()
