"""The rules CT166, CT178 and CT192: the packages that Python models import, and the modules that they do not get."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import ContainerEnvironment

if TYPE_CHECKING:
    from golden_messages import Messages
    from sample_repositories import Change, Write

CLASS = "class TritonPythonModel:\n    def execute(self, requests):\n"
MODEL = f"{CLASS}        return []\n"
FOUND = ("CT166", "model/1/model.py", "")
PYTHON_CONFIG = """
backend: "python"
input { name: "IN" data_type: TYPE_FP32 dims: 1 }
output { name: "OUT" data_type: TYPE_FP32 dims: 1 }
"""
OWN_IMAGE = f"example.com/triton@sha256:{'0' * 64}"
HERE = "import sys\nfrom pathlib import Path\nHERE = Path(__file__).resolve().parent\n"
ENVIRONMENT = (
    'backend: "python" parameters { key: "EXECUTION_ENV_PATH" '
    'value { string_value: "$$TRITON_MODEL_DIRECTORY/env.tar.gz" } }'
)
CONDA = "conda-meta/python-3.12.4-h5148396_1.json bin/activate lib/python3.12/os.py"


def platform(release: str | None = "25.09", image: str | None = None) -> ServingPlatform:
    return ServingPlatform(release=release, instance_type="ml.g5.xlarge", image=image)


def model(source: str, **others: Change) -> dict[str, Change]:
    return {"model/config.pbtxt": 'backend: "python"', "model/1/model.py": source, **others}


def within(method: str, body: str, more: str = "") -> str:
    """A model with statements in one of its methods."""
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    rest = "" if method == "execute" else f"{MODEL.partition(chr(10))[2]}"
    return f"{more}class TritonPythonModel:\n    def {method}(self, args):\n{lines}{rest}"


MISSING = {
    "at the top": f"import pandas\n{MODEL}",
    "with another name": f"import numpy as np, pandas as pd\n{MODEL}",
    "a submodule": f"import sklearn.linear_model\n{MODEL}",
    "from": f"from transformers import AutoTokenizer\n{MODEL}",
    "AWS": f"import boto3\n{MODEL}",
    "in initialize": within("initialize", "import torch\nself.model = torch.load('x')"),
    "in execute": within("execute", "import torch\nreturn []"),
    "in a loop over the requests": within("execute", "for each in args:\n    import torch\nreturn []"),
    "after a loop": within("execute", "for each in args:\n    if not each: continue\nimport torch\nreturn []"),
    "in a function that is called": within("initialize", "prepare()", "def prepare():\n    import torch\n"),
    "in a method that is called": (within("initialize", "self.load()") + "    def load(self):\n        import torch\n"),
    "in a class that is made": within(
        "initialize", "self.x = Text()", "class Text:\n    def __init__(self):\n        import torch\n"
    ),
    "in the body of a class": "class Text:\n    import torch\n" + MODEL,
    "by importlib": f"import importlib\ntorch = importlib.import_module('torch.nn')\n{MODEL}",
    "by import_module": f"from importlib import import_module as load\ntorch = load('torch')\n{MODEL}",
    "by __import__": within("initialize", "self.torch = __import__('torch')"),
    "another error is caught": f"try:\n    import torch\nexcept ValueError:\n    torch = None\n{MODEL}",
    "finally": f"try:\n    x = 1\nfinally:\n    import torch\n{MODEL}",
    "with warnings off": f"import warnings\nwith warnings.catch_warnings():\n    import torch\n{MODEL}",
    "not for types": f"from typing import TYPE_CHECKING\nif not TYPE_CHECKING:\n    import torch\n{MODEL}",
    "a directory of the model is searched": f"{HERE}sys.path.insert(0, str(HERE / 'vendor'))\nimport torch\n{MODEL}",
    "the path is only looked at": f"import sys\nprint('x' in sys.path)\nimport torch\n{MODEL}",
    "removed from the standard library": f"import asyncore\n{MODEL}",
    "imp": f"import imp\n{MODEL}",
    "named as a submodule that is there": f"import linear_model\n{MODEL}",
}


@pytest.mark.parametrize("source", MISSING.values(), ids=MISSING)
def test_a_package_that_nobody_brings(messages: Messages, write: Write, source: str) -> None:
    repository = write(model(source), base={})
    assert messages.of(repository.check(platform=platform())) == [FOUND]


SOUND = {
    "the image": "import json, numpy\nimport triton_python_backend_utils as pb\nimport c_python_backend_utils\n",
    "the future": "from __future__ import annotations\nimport tomllib\n",
    "DALI": "import nvidia.dali\n",
    "setuptools has it": "import distutils\n",
    "ImportError": "try:\n    import torch\nexcept ImportError:\n    torch = None\n",
    "ModuleNotFoundError": "try:\n    import torch\nexcept (ValueError, ModuleNotFoundError):\n    torch = None\n",
    "any error": "try:\n    import torch\nexcept Exception:\n    torch = None\n",
    "every error": "try:\n    import torch\nexcept:\n    torch = None\n",
    "an error of one's own": "import errors\ntry:\n    import torch\nexcept errors.Missing:\n    torch = None\n",
    "another package instead": "try:\n    import json\nexcept ImportError:\n    import simplejson as json\n",
    "after a success": "try:\n    import torch\nexcept ImportError:\n    pass\nelse:\n    import torchvision\n",
    "suppressed": "import contextlib\nwith contextlib.suppress(ImportError):\n    import torch\n",
    "a context manager of one's own": "import errors\nwith errors.optional():\n    import torch\n",
    "for types": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch\n",
    "for types, by typing": "import typing as t\nif t.TYPE_CHECKING:\n    import torch\n",
    "a condition": "import sys\nif sys.version_info < (3, 11):\n    import tomli\n",
    "found before": "from importlib.util import find_spec\nif find_spec('torch'):\n    import torch\n",
    "a script": "if __name__ == '__main__':\n    import torch\n",
    "in a function that nobody calls": "def debug():\n    import torch\n",
    "in a function that is called where errors are caught": (
        "def load():\n    import torch\ntry:\n    load()\nexcept ImportError:\n    pass\n"
    ),
    "in a lambda": "load = lambda: __import__('torch')\n",
    "by a name": "import importlib\nload = lambda name: importlib.import_module(name)\n",
    "a part of an expression": "torch = False and __import__('torch')\n",
    "a path elsewhere": "import sys\nsys.path.append('/opt/packages')\nimport torch\n",
    "a path by a variable": "import os, sys\nsys.path.append(os.environ['PACKAGES'])\nimport torch\n",
    "a path above the repository": f"{HERE}sys.path.append(str(HERE.parents[2]))\nimport torch\n",
    "a path under another name": "from sys import path\npath.append('/opt/packages')\nimport torch\n",
    "a path by site": "import site\nsite.addsitedir('/opt/packages')\nimport torch\n",
    "another path": "import sys\nsys.path = ['/opt/packages', *sys.path]\nimport torch\n",
    "a module put in place": "import sys, types\nsys.modules['torch'] = types.ModuleType('torch')\nimport torch\n",
    "installed": (
        "import subprocess\nsubprocess.check_call(['python3', '-m', 'pip', 'install', 'torch'])\nimport torch\n"
    ),
}


@pytest.mark.parametrize("source", SOUND.values(), ids=SOUND)
def test_sound_imports(write: Write, source: str) -> None:
    repository = write(model(source + MODEL, **{"model/1/errors.py": "class Missing(Exception): ..."}), base={})
    assert repository.check(platform=platform()) == ()


def test_an_import_after_a_function_may_have_ended(write: Write) -> None:
    source = within("initialize", "if not args: return\nimport torch")
    assert write(model(source), base={}).check(platform=platform()) == ()


@pytest.mark.parametrize(
    ("source", "files", "expected"),
    [
        pytest.param("import text", {"1/text.py": ""}, [], id="beside the model"),
        pytest.param("import text.clean", {"1/text/clean.py": ""}, [], id="a package without __init__.py"),
        pytest.param("import text", {"text/__init__.py": ""}, [], id="in the model's directory"),
        pytest.param("import text", {"1/text.cpython-312-x86_64-linux-gnu.so": "x"}, [], id="compiled"),
        pytest.param("import text", {"1/text.cpython-312-darwin.so": "x"}, [], id="compiled for macOS: CT115"),
        pytest.param("from . import text", {"1/text.py": "import torch"}, ["model/1/text.py"], id="relative"),
        pytest.param("import text", {"1/text.py": "import torch"}, ["model/1/text.py"], id="in a module"),
        pytest.param(
            "import torch, text", {"1/text.py": "import torch"}, ["model/1/model.py", "model/1/text.py"], id="in both"
        ),
        pytest.param("import text", {"1/text.py": "def f():\n    import torch"}, [], id="in a module's function"),
        pytest.param(
            f"{HERE}sys.path.insert(0, str(HERE / 'vendor'))\nimport torch, six",
            {"1/vendor/torch/__init__.py": "import nothing"},
            [],
            id="in a directory of its own",
        ),
        pytest.param(
            "import os, sys\nsys.path += [os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib')]\n"
            "import torch, pandas",
            {"lib/torch.py": ""},
            ["model/1/model.py"],
            id="beside the version",
        ),
        pytest.param(
            f"{HERE}sys.path.insert(0, str(HERE / 'vendor.zip'))\nimport torch", {"1/vendor.zip": "PK"}, [], id="zipped"
        ),
        pytest.param(
            "import text\nimport torch",
            {"1/text.py": "import sys\nsys.path.append('/opt/packages')"},
            [],
            id="a module changes the path",
        ),
        pytest.param("import torch", {"1/vendor/torch/__init__.py": ""}, ["model/1/model.py"], id="not searched"),
        pytest.param("import torch", {"triton_python_backend_stub": "x"}, [], id="a Python of its own"),
    ],
)
def test_modules_of_the_repository(write: Write, source: str, files: Mapping[str, str], expected: list[str]) -> None:
    others = {f"model/{name}": content for name, content in files.items()}
    findings = write(model(f"{source}\n{MODEL}", **others), base={}).check(platform=platform())
    assert [finding.path for finding in findings if finding.code == "CT166"] == expected


@pytest.mark.parametrize("file", ["common.py", "common/__init__.py", "other/1/common.py"])
def test_a_module_in_another_place_of_the_repository(messages: Messages, write: Write, file: str) -> None:
    findings = write(model(f"import common\n{MODEL}", **{file: ""}), base={}).check(platform=platform())
    (finding,) = [finding for finding in findings if finding.code == "CT166"]
    assert messages.of([finding]) == [FOUND]
    assert finding.fix == f"copy {file.removesuffix('/__init__.py')} into model/1, where Python looks"


@pytest.mark.parametrize(
    "source", ["from b.helpers import scale", "from b import helpers", "import b.helpers as helpers"]
)
def test_a_module_in_the_directory_of_another_model(messages: Messages, write: Write, source: str) -> None:
    others = {"b/config.pbtxt": 'backend: "python"', "b/1/model.py": MODEL, "b/helpers.py": ""}
    findings = write(model(f"{source}\n{MODEL}", **others), base={}).check(platform=platform(), default_model="model")
    (finding,) = [finding for finding in findings if finding.code == "CT166"]
    assert messages.of([finding]) == [FOUND]
    assert finding.fix == "copy b/helpers.py to model/1/b/helpers.py, where Python looks"


@pytest.mark.parametrize(
    ("release", "module", "is_found"),
    [
        ("24.09", "tomllib", True),
        ("25.09", "tomllib", False),
        ("24.09", "distutils", False),
        ("24.09", "asyncore", False),
        ("24.01", "nvidia.dali", True),
        ("24.05", "nvidia.dali", False),
        ("24.09", "cupy", True),
        ("25.04", "cupy", False),
        ("24.09", "fastapi", True),
        ("25.09", "scipy", True),
        ("26.05", "scipy", False),
        ("26.05", "pandas", True),
        ("22.07", "zoneinfo", True),
    ],
)
def test_each_release_has_its_own_modules(write: Write, release: str, module: str, *, is_found: bool) -> None:
    findings = write(model(f"import {module}\n{MODEL}"), base={}).check(platform=platform(release))
    assert ("CT166" in {finding.code for finding in findings}) == is_found


@pytest.mark.parametrize(
    ("settings", "release", "module", "is_found"),
    [
        pytest.param(None, None, "torch", False, id="nothing declared"),
        pytest.param(None, "25.09", "torch", False, id="nothing declared for a release"),
        pytest.param('image_modules = ["torch"]', None, "torch", False, id="declared"),
        pytest.param('image_modules = ["torch"]', None, "pandas", True, id="another one"),
        pytest.param('image_modules = ["torch"]', None, "asyncore", False, id="a Python that is not known"),
        pytest.param('image_modules = ["torch"]', "25.09", "pandas", True, id="another one, of a release"),
        pytest.param('image_modules = ["torch"]', "27.01", "pandas", True, id="another one, of a newer release"),
        pytest.param("image_modules = []", "25.09", "torch", True, id="no other"),
    ],
)
def test_an_own_image_has_what_is_declared(
    write: Write, settings: str | None, release: str | None, module: str, *, is_found: bool
) -> None:
    repository = write(model(f"import {module}\n{MODEL}", **{"cdk-triton.toml": settings} if settings else {}), base={})
    findings = repository.check(platform=platform(release, OWN_IMAGE))
    assert ("CT166" in {finding.code for finding in findings}) == is_found


def test_modules_that_are_declared_for_an_image_of_sagemaker(write: Write) -> None:
    repository = write(model(f"import torch\n{MODEL}", **{"cdk-triton.toml": 'image_modules = ["torch"]'}), base={})
    assert repository.check(platform=platform()) == ()


def test_no_release_is_no_finding(write: Write) -> None:
    assert write(model(f"import torch\n{MODEL}"), base={}).check() == ()


def test_directories_that_the_container_adds(write: Write) -> None:
    repository = write(model(f"import torch\n{MODEL}"), base={})
    environment = ContainerEnvironment(variables={"PYTHONPATH": "/opt/packages"})
    assert repository.check(platform=platform(), environment=environment) == ()


@pytest.mark.parametrize(
    ("packages", "is_found"),
    [
        pytest.param(["torch/__init__.py", "numpy/__init__.py"], False, id="brought"),
        pytest.param(["numpy/__init__.py"], True, id="not brought"),
        pytest.param(["torch.cpython-312-x86_64-linux-gnu.so"], False, id="compiled"),
        pytest.param(["numpy/__init__.py", "distutils-precedence.pth"], True, id="setuptools"),
        pytest.param(["numpy/__init__.py", "easy-install.pth"], False, id="directories elsewhere"),
        pytest.param(["six.py"], False, id="packages at another place"),
    ],
)
@pytest.mark.parametrize("is_packed", [True, False], ids=["packed", "unpacked"])
def test_an_environment(write: Write, packages: list[str], *, is_found: bool, is_packed: bool) -> None:
    members = [*CONDA.split(), *(f"lib/python3.12/site-packages/{name}" for name in packages)]
    files: dict[str, Change] = {f"model/env/{name}": "x" for name in members}
    if is_packed:
        files = {"model/env.tar.gz": " ".join(members)}
    config = ENVIRONMENT if is_packed else ENVIRONMENT.replace(".tar.gz", "")
    repository = write(model(f"import torch\n{MODEL}", **files) | {"model/config.pbtxt": config}, base={})
    assert ("CT166" in {each.code for each in repository.check(platform=platform())}) == is_found


def test_an_environment_that_a_recipe_makes(write: Write) -> None:
    files = {"model/config.pbtxt": ENVIRONMENT, "cdk-triton.toml": 'produced = ["model/env.tar.gz"]'}
    assert write(model(f"import torch\n{MODEL}") | files, base={}).check(platform=platform()) == ()


def test_a_module_with_the_name_of_one_that_python_removed(write: Write) -> None:
    repository = write(model(f"import imp\n{MODEL}", **{"model/1/imp.py": "import nowhere"}), base={})
    findings = repository.check(platform=platform())
    assert [(each.code, each.path) for each in findings] == [("CT166", "model/1/imp.py")]


@pytest.mark.parametrize(
    ("source", "files", "release", "is_found"),
    [
        pytest.param("import queue", {"1/queue.py": ""}, None, True, id="in the version's directory"),
        pytest.param("from queue import Item", {"queue/__init__.py": ""}, None, True, id="a package above"),
        pytest.param("import numpy", {"1/numpy.py": ""}, None, True, id="numpy"),
        pytest.param("import tomllib", {"1/tomllib.py": ""}, "25.09", True, id="of this Python"),
        pytest.param("import tomllib", {"1/tomllib.py": ""}, "24.09", False, id="of a newer Python"),
        pytest.param("import tomllib", {"1/tomllib.py": ""}, None, False, id="of some Pythons"),
        pytest.param("from . import queue", {"1/queue.py": ""}, None, False, id="relative"),
        pytest.param("import queue\nfrom .queue import X", {"1/queue.py": "X = 1"}, None, False, id="both"),
        pytest.param("import winreg", {"1/winreg.py": ""}, "25.09", False, id="of Windows"),
        pytest.param("import msilib", {"1/msilib.py": ""}, "24.09", False, id="a package of Windows"),
        pytest.param("import nt", {"1/nt.py": ""}, None, False, id="of Windows, without a release"),
        pytest.param("import _scproxy", {"1/_scproxy.py": ""}, "25.09", False, id="of macOS"),
        pytest.param("import html", {"1/html/page.html": "x"}, None, False, id="a directory of data"),
        pytest.param("import words", {"1/words.py": ""}, None, False, id="another name"),
        pytest.param("import json", {"1/queue.py": ""}, None, False, id="not imported"),
        pytest.param(f"{HERE}sys.path.insert(0, str(HERE))\nimport queue", {"1/queue.py": ""}, None, False, id="path"),
    ],
)
def test_a_module_that_the_standard_library_hides(
    messages: Messages, write: Write, source: str, files: Mapping[str, str], release: str | None, *, is_found: bool
) -> None:
    others = {f"model/{name}": content for name, content in files.items()}
    repository = write(model(f"{source}\n{MODEL}", **others), base={})
    findings = repository.check(platform=None if release is None else platform(release))
    found = messages.of(finding for finding in findings if finding.code == "CT178")
    assert found == ([("CT178", "model/1/model.py", "")] if is_found else [])


@pytest.mark.parametrize(
    ("files", "fix"),
    [
        pytest.param(
            {"1/model.py": "import queue", "1/queue.py": ""},
            "give model/1/queue.py another name, or import it with `from . import queue`",
            id="a file beside",
        ),
        pytest.param(
            {"1/model.py": "import queue", "1/queue/__init__.py": ""},
            "give model/1/queue/__init__.py another name, or import it with `from . import queue`",
            id="a package beside",
        ),
        pytest.param(
            {"1/model.py": "import queue", "queue.py": ""}, "give model/queue.py another name", id="a file above"
        ),
        pytest.param(
            {"1/model.py": "import queue", "queue/__init__.py": ""},
            "give model/queue/__init__.py another name",
            id="a package above",
        ),
        pytest.param(
            {"1/model.py": "import helper", "1/helper.py": "import queue", "1/queue.py": ""},
            "give model/1/queue.py another name",
            id="a module that is in no package",
        ),
        pytest.param(
            {"1/model.py": "import numpy", "1/numpy/__init__.py": ""},
            "remove model/1/numpy, or use this numpy in a packed environment",
            id="a numpy beside",
        ),
        pytest.param(
            {"1/model.py": "import queue", "1/queue/__init__.py": "", "1/queue-1.0.dist-info/METADATA": ""},
            "remove model/1/queue, which pip installed",
            id="a package that pip installed",
        ),
        pytest.param(
            {"1/model.py": "import queue", "queue.py": "", "queue-1.0.dist-info/METADATA": ""},
            "remove model/queue.py, which pip installed",
            id="a module that pip installed",
        ),
    ],
)
def test_the_fix_of_a_hidden_module(write: Write, files: dict[str, str], fix: str) -> None:
    others: dict[str, Change] = {f"model/{name}": content for name, content in files.items()}
    others["model/1/model.py"] = f"{files['1/model.py']}\n{MODEL}"
    repository = write({"model/config.pbtxt": 'backend: "python"', **others}, base={})
    assert [finding.fix for finding in repository.check() if finding.code == "CT178"] == [fix]


def test_a_hidden_module_in_an_image_of_ones_own(messages: Messages, write: Write) -> None:
    repository = write(model(f"import tomllib\n{MODEL}", **{"model/1/tomllib.py": ""}), base={})
    (finding,) = repository.check(platform=platform("25.09", OWN_IMAGE))
    assert "the standard library of Python 3.12 of 25.09 (the release given for your image)" in finding.message
    messages.of([finding])


UTILITIES = "def deserialize_bytes_tensor(x): ...\ndef serialize_byte_tensor(x): ...\n"
CONFIG = "class ModelConfig: ...\n"


@pytest.mark.parametrize(
    ("files", "is_found"),
    [
        pytest.param({"1/{}.py": ""}, True, id="empty"),
        pytest.param({"1/{}.py": UTILITIES}, True, id="no ModelConfig"),
        pytest.param({"1/{}.py": UTILITIES + CONFIG}, False, id="complete"),
        pytest.param({"{}.py": CONFIG}, True, id="in the model's directory"),
        pytest.param({"1/{}/__init__.py": ""}, True, id="a package"),
        pytest.param({"1/{}/other.py": ""}, False, id="a directory, which a module hides"),
        pytest.param({"1/tests/{}.py": ""}, False, id="where Python does not look"),
        pytest.param({"1/{}.py": "from utilities import *\n"}, False, id="names of another module"),
        pytest.param({"1/{}.py": "def __getattr__(name): ..."}, False, id="names that are made"),
        pytest.param({"1/{}.py": "", "triton_python_backend_stub": "elf"}, False, id="a stub of its own"),
        pytest.param({"1/{}.py": "", "1/model.py": HERE + "sys.path.insert(0, HERE)\n" + MODEL}, False, id="a path"),
    ],
)
def test_a_file_that_hides_the_servers_utilities(
    messages: Messages, write: Write, files: Mapping[str, str], is_found: bool
) -> None:
    written = {f"model/{name.format('triton_python_backend_utils')}": content for name, content in files.items()}
    findings = write({**model(MODEL), **written}, base={}).check(platform=platform())
    codes = [code for code, *_ in messages.of(each for each in findings if each.code == "CT192")]
    assert codes == ["CT192"] * is_found


@pytest.mark.parametrize(("arguments", "codes"), [((), ["CT192"]), (("--disable-auto-complete-config",), [])])
def test_a_server_that_completes_nothing_needs_no_model_config(
    write: Write, arguments: tuple[str, ...], codes: list[str]
) -> None:
    files = {"model/config.pbtxt": PYTHON_CONFIG, "model/1/triton_python_backend_utils.py": UTILITIES}
    environment = ContainerEnvironment(additional_args=arguments)
    findings = write({**model(MODEL), **files}, base={}).check(platform=platform(), environment=environment)
    assert [each.code for each in findings] == codes
