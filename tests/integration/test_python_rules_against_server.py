"""The rules of Python models before NVIDIA's own Python backend, that of nvidia-pytriton.

They are CT140 to CT144, CT146, CT160 to CT163, CT166, CT169, CT175, CT176, CT181, CT183, CT184, CT186, CT191 and CT192.
The backend is that of 24.10 with Python 3.11. The repositories are checked without a platform, unless the release
decides. CT141 and CT160 depend on the Python. CT180 is a warning about lines that may never run. The names of files and
models have a file of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from cdk_triton.sagemaker import ServingPlatform
from judging.python_models import CLASS, EXECUTE, PYTHON, SOURCE, Files, model, named, write
from judging.server import Judge

INITIALIZE = "    def initialize(self): pass\n"
COMPLETE = "    @staticmethod\n    def auto_complete_config(c):\n        "
READS = "import json\nfrom pathlib import Path\n"
UTILS = "import triton_python_backend_utils as pb_utils\n"
REQUEST = "pb_utils.InferenceRequest(model_name='model', model_version=1, requested_output_names=[], inputs=list())"
ASKS = f"""
    def ask(self): {REQUEST}.exec()
    async def wait(self): await {REQUEST}.async_exec()
    def """

OWN_UTILS = "triton_python_backend_utils.py"
NEEDED_UTILS = "def deserialize_bytes_tensor(x): ...\ndef serialize_byte_tensor(x): ...\n"

REFUSED: Mapping[str, tuple[str, Files, str]] = {
    "utilities of one's own": (
        "CT192",
        {f"1/{OWN_UTILS}": "TYPE = 'TYPE_FP32'"},
        "module 'triton_python_backend_utils' has no attribute 'deserialize_bytes_tensor'",
    ),
    "utilities of one's own in the model's directory": (
        "CT192",
        {OWN_UTILS: "def deserialize_bytes_tensor(x): ..."},
        "module 'triton_python_backend_utils' has no attribute 'serialize_byte_tensor'",
    ),
    "utilities of one's own without ModelConfig": (
        "CT192",
        {f"1/{OWN_UTILS}": NEEDED_UTILS},
        "module 'triton_python_backend_utils' has no attribute 'ModelConfig'",
    ),
    "return outside": ("CT140", model(f"{SOURCE}return 1"), "'return' outside function"),
    "await in a plain function": (
        "CT140",
        model(CLASS + "    def execute(self, requests): await requests"),
        "'await' outside async function",
    ),
    "a future import that is not first": (
        "CT140",
        model(f"{SOURCE}from __future__ import annotations"),
        "from __future__ imports must occur at the beginning of the file",
    ),
    "a broken f-string": ("CT140", model(SOURCE + 'f"{a b}"'), "SyntaxError"),
    "a broken helper": ("CT140", {**model(f"import text\n{SOURCE}"), "1/text.py": "return"}, "SyntaxError"),
    "a broken package": ("CT140", {"1/__init__.py": "return"}, "'return' outside function"),
    "no class as a program": (
        "CT142",
        model("if __name__ == '__main__':\n    class TritonPythonModel: pass"),
        "module '1.model' has no attribute 'TritonPythonModel'",
    ),
    "a deleted class": ("CT142", model(f"{SOURCE}del TritonPythonModel"), "has no attribute 'TritonPythonModel'"),
    "inherited initialize": (
        "CT144",
        model(f"class Base:\n{INITIALIZE}class TritonPythonModel(Base):\n{EXECUTE}"),
        "TypeError",
    ),
    "a lambda": ("CT144", model(f"{SOURCE}    initialize = lambda self: None"), "TypeError"),
    "a dataclass": (
        "CT144",
        model(f"from dataclasses import dataclass\n@dataclass\n{CLASS}    path: str\n{EXECUTE}"),
        "TypeError",
    ),
    "the version's number": ("CT146", named("1.py"), "No module named '1.1'; '1' is not a package"),
    "a dot before": ("CT146", named("./model.py", "model.py"), "No module named '.'"),
    "a slash before": ("CT146", named("/model.py", "model.py"), "No module named '1'"),
    "a directory with a dot": ("CT146", named("sub.d/main.py"), "No module named 'sub'"),
    "a directory of the standard library": ("CT146", named("json/model.py"), "No module named 'json.model'"),
    "a module in the way": ("CT146", {"1.py": ""}, "No module named '1.model'; '1' is not a package"),
    "a missing helper": ("CT161", model(f"from .text import clean\n{SOURCE}"), "No module named '1.text'"),
    "beyond the top": (
        "CT161",
        {**model(f"from ..text import clean\n{SOURCE}"), "text.py": "clean = 1"},
        "attempted relative import beyond top-level package",
    ),
    "a missing helper in a method": (
        "CT161",
        model(f"{SOURCE}    def initialize(self, args):\n        from .text import clean"),
        "No module named '1.text'",
    ),
    "a missing helper in a function": (
        "CT161",
        model(f"def load():\n    from .text import clean\n{SOURCE}    def initialize(self, args): load()"),
        "No module named '1.text'",
    ),
    "a missing name": (
        "CT161",
        {**model(f"from .text import clean\n{SOURCE}"), "1/text.py": ""},
        "cannot import name 'clean' from '1.text'",
    ),
    **{
        f"a configuration: {body}": (
            "CT162",
            model(SOURCE + COMPLETE + body),
            "auto_complete_config function in model 'model' must return a valid pb.ModelConfig object.",
        )
        for body in ("pass", "return {}", "yield c", "return c.set_max_batch_size(0)")
    },
    "a number": ("CT163", model("TritonPythonModel = 5"), "'int' object is not callable"),
    "an abstract class": (
        "CT163",
        model("import abc\nclass TritonPythonModel(abc.ABC):\n    @abc.abstractmethod\n    def execute(self, r): ..."),
        "Can't instantiate abstract class TritonPythonModel",
    ),
    "a protocol": (
        "CT163",
        model(f"from typing import Protocol\nclass TritonPythonModel(Protocol):\n{EXECUTE}"),
        "Protocols cannot be instantiated",
    ),
    "no function": ("CT163", model(f"{SOURCE}    initialize = None"), "'NoneType' object is not callable"),
    "a named tuple": (
        "CT144",
        model(f"from typing import NamedTuple\nclass TritonPythonModel(NamedTuple):\n    path: str\n{EXECUTE}"),
        "TypeError",
    ),
    **{
        f"a class that Python refuses: {said}": ("CT181", model(source + EXECUTE), said)
        for source, said in (
            ("class TritonPythonModel(bool):\n", "TypeError: type 'bool' is not an acceptable base type"),
            ("class TritonPythonModel(None):\n", "TypeError: NoneType takes no arguments"),
            ("class TritonPythonModel(x=1):\n", "__init_subclass__() takes no keyword arguments"),
            ("class TritonPythonModel(object, int):\n", "TypeError: Cannot create a consistent method resolution"),
            ("class A: pass\nclass TritonPythonModel(A, A):\n", "TypeError: duplicate base class A"),
            ("class A(int, str): pass\n" + CLASS, "TypeError: multiple bases have instance lay-out conflict"),
            (
                CLASS + "    __slots__ = ('a',)\n    a = 1\n",
                "ValueError: 'a' in __slots__ conflicts with class variable",
            ),
            (
                "def f(): pass\nclass A(f): pass\n" + CLASS,
                "TypeError: function() argument 'code' must be code, not str",
            ),
        )
    },
    **{
        f"initialize: {body}": (
            "CT184",
            {**model(f"{READS}{SOURCE}    def initialize(self, args):\n        {body}"), "labels.txt": ""},
            words,
        )
        for body, words in (
            ("args['model_path']", "KeyError: 'model_path'"),
            ("args['model_config']['input']", "TypeError: string indices must be integers, not 'str'"),
            ("json.loads(args['model_config'])['inputs']", "KeyError: 'inputs'"),
            ("json.loads(args['model_config'])['input'][1]", "IndexError: list index out of range"),
            ("json.loads(args['model_config'])['parameters']['x']", "KeyError: 'x'"),
            ("float(json.loads(args['model_config'])['output'])", "TypeError: float() argument must be a string"),
            ("Path(__file__).with_name('x'), (Path(__file__).parent / 'labels.txt').open()", "FileNotFoundError"),
        )
    },
    "an asynchronous constructor": (
        "CT163",
        model(f"{SOURCE}    async def __init__(self): pass"),
        "__init__() should return None, not 'coroutine'",
    ),
    "a name that the server sets later": (
        "CT175",
        model(f"{UTILS}class Error(pb_utils.TritonModelException): ...\n{SOURCE}"),
        "AttributeError: module 'triton_python_backend_utils' has no attribute 'TritonModelException'",
    ),
    "such a name by a star": (
        "CT175",
        model(f"from triton_python_backend_utils import *\n{SOURCE}    def initialize(self, args): Tensor"),
        "NameError: name 'Tensor' is not defined",
    ),
    "any attribute": (
        "CT163",
        model(f"{SOURCE}    def __getattr__(self, name): return 7"),
        "'int' object is not callable",
    ),
    "an annotation with such a name": (
        "CT175",
        model(f"{UTILS}{CLASS}    def execute(self, requests) -> list[pb_utils.InferenceResponse]: return []"),
        "AttributeError: module 'triton_python_backend_utils' has no attribute 'InferenceResponse'",
    ),
    "such a name imported": (
        "CT175",
        model(f"from triton_python_backend_utils import Tensor\n{SOURCE}"),
        "ImportError: cannot import name 'Tensor' from 'triton_python_backend_utils'",
    ),
    "a misspelt name of the server": (
        "CT175",
        model(f"{UTILS}{SOURCE}    def initialize(self, args): pb_utils.get_input_config('x')"),
        "AttributeError: module 'triton_python_backend_utils' has no attribute 'get_input_config'",
    ),
    **{
        f"{body} too early": ("CT191", model(f"import asyncio\n{UTILS}{SOURCE}{ASKS}{body}"), words)
        for body, words in (
            ("initialize(self, args): self.ask()", "BLS is only supported during the 'execute' function."),
            ("__init__(self): self.ask()", "BLS is only supported during the 'execute' function."),
            (f"initialize(self, args): {REQUEST}.async_exec()", "RuntimeError: no running event loop"),
            (
                "initialize(self, args): asyncio.run(self.wait())",
                "BLS is only supported during the 'execute' function.",
            ),
            ("initialize(self, args): pb_utils.load_model('other')", "Server not ready"),
            ("initialize(self, args): pb_utils.is_model_ready('other')", "Server not ready"),
        )
    },
    "a name that nothing defines": ("CT176", model(f"X = np.zeros(1)\n{SOURCE}"), "name 'np' is not defined"),
    "an annotation that nothing defines": (
        "CT176",
        model(f"{CLASS}    def execute(self, requests: List[int]): return []"),
        "NameError: name 'List' is not defined",
    ),
    "a name in initialize": (
        "CT176",
        model(f"{SOURCE}    def initialize(self, args): self.x = json.loads('1')"),
        "NameError: name 'json' is not defined",
    ),
    "an environment without a slash": (
        "CT153",
        {
            "config.pbtxt": PYTHON + 'parameters { key: "EXECUTION_ENV_PATH" value { string_value: '
            '"$$TRITON_MODEL_DIRECTORYenv" } }',
            "env/bin/activate": "",
        },
        "Failed to get the canonical path for modelenv.",
    ),
    "an environment beyond a missing directory": (
        "CT153",
        {
            "config.pbtxt": PYTHON + 'parameters { key: "EXECUTION_ENV_PATH" value { string_value: '
            '"$$TRITON_MODEL_DIRECTORY/9/../env" } }',
            "env/bin/activate": "",
        },
        "Failed to get the canonical path for model/9/../env.",
    ),
}


@pytest.mark.parametrize(("code", "files", "words"), REFUSED.values(), ids=REFUSED)
def test_the_python_backend_rejects_what_is_an_error(
    tmp_path: Path, python_judge: Judge, code: str, files: Files, words: str
) -> None:
    repository = write(tmp_path / "repository", files)
    (finding,) = repository.check()
    assert (finding.code, finding.severity.value) == (code, "error")
    assert words in finding.message
    verdict = python_judge(repository.root, ["model"])
    assert not verdict.loaded
    assert words in verdict.said


# In Python 3.11, which runs here, as in a Python of the image.
OF_THE_IMAGE: Mapping[str, tuple[str, str, str, str]] = {
    "a package": ("CT166", "25.09", "import no_such_package", "ModuleNotFoundError: No module named 'no_such_package'"),
    "a file of the repository": ("CT166", "25.09", "import common", "ModuleNotFoundError: No module named 'common'"),
    "a name that is gone": (
        "CT169",
        "25.09",
        "from collections import Mapping",
        "ImportError: cannot import name 'Mapping' from 'collections'",
    ),
    "a name of a later Python": (
        "CT169",
        "24.09",
        "import itertools\nX = itertools.batched",
        "AttributeError: module 'itertools' has no attribute 'batched'",
    ),
    "a name of numpy": (
        "CT169",
        "25.09",
        "import numpy as np\nX = np.float",
        "AttributeError: module 'numpy' has no attribute 'float'",
    ),
}


@pytest.mark.parametrize(("code", "release", "source", "words"), OF_THE_IMAGE.values(), ids=OF_THE_IMAGE)
def test_the_python_of_the_image_decides(
    tmp_path: Path, python_judge: Judge, code: str, release: str, source: str, words: str
) -> None:
    repository = write(tmp_path / "repository", model(f"{source}\n{SOURCE}"))
    (tmp_path / "repository" / "common.py").write_text("")
    platform = ServingPlatform(release=release, instance_type="ml.g5.xlarge")
    (finding,) = [finding for finding in repository.check(platform=platform) if finding.code in ("CT166", "CT169")]
    assert finding.code == code
    assert words in finding.message
    verdict = python_judge(repository.root, ["model"])
    assert not verdict.loaded
    assert words in verdict.said


@pytest.mark.parametrize(
    "path",
    [
        "'/models/model/1/words.txt'",
        "'/opt/ml/model/model/1/wrods.txt'",
        "'words.txt'",
        "str(Path(__file__).parent / 'wrods.txt')",
    ],
)
def test_a_path_that_the_endpoint_does_not_have(tmp_path: Path, python_judge: Judge, path: str) -> None:
    source = f"{READS}{SOURCE}    def initialize(self, args): open({path})"
    repository = write(tmp_path / "repository", model(source, **{"1/words.txt": "cat"}))
    (finding,) = repository.check()
    assert (finding.code, finding.severity.value) == ("CT183", "warning")
    assert "FileNotFoundError" in finding.message
    verdict = python_judge(repository.root, ["model"])
    assert not verdict.loaded
    assert "FileNotFoundError" in verdict.said


def test_a_parameter_that_a_newer_release_has(tmp_path: Path, python_judge: Judge) -> None:
    body = "pb_utils.InferenceResponse(output_tensors=[], parameters={})"
    repository = write(tmp_path / "repository", model(f"{UTILS}{SOURCE}    def initialize(self, args): {body}"))
    (finding,) = repository.check(platform="24.09/ml.g5.xlarge")
    words = "TypeError: __init__(): incompatible constructor arguments"
    assert (finding.code, words in finding.message) == ("CT186", True)
    verdict = python_judge(repository.root, ["model"])
    assert not verdict.loaded
    assert words in verdict.said


LOADED: Mapping[str, Files] = {
    "utilities of one's own that are complete": {
        f"1/{OWN_UTILS}": f"{NEEDED_UTILS}import json\nclass ModelConfig:\n"
        "    def __init__(self, text): self._model_config = json.loads(text)"
    },
    "a directory with the name of the utilities": {f"1/{OWN_UTILS.removesuffix('.py')}/other.py": ""},
    "names that are there": model(
        f"from __future__ import annotations\n{UTILS}X = pb_utils.np, pb_utils.ModelConfig, exit, __file__\n"
        f"def text_of(tensor: pb_utils.Tensor) -> List[str]: ...\n"
        f"{SOURCE}    def initialize(self, args): pb_utils.Logger, pb_utils.Tensor, pb_utils.get_model_dir()"
    ),
    "names in functions": model(f"def later(): return np, pb_utils\n{SOURCE}"),
    "made global": model(f"def make():\n    global TritonPythonModel\n    {CLASS}        x = 1\nmake()"),
    "captured": model(f"{SOURCE.replace('Triton', '')}match PythonModel:\n    case TritonPythonModel: pass"),
    "set afterwards": model(f"{CLASS}{INITIALIZE}setattr(TritonPythonModel, 'initialize', lambda self, args: None)"),
    "deleted": model(f"{SOURCE}{INITIALIZE}    del initialize"),
    "one of two": model(f"{SOURCE}    if 1:\n        def initialize(self, args): pass\n    else:\n    {INITIALIZE}"),
    "a metaclass": model(
        "class Meta(type):\n    def __call__(cls): return object.__new__(cls)\n"
        f"class TritonPythonModel(metaclass=Meta):\n    def __init__(self, path): pass\n{EXECUTE}"
    ),
    "__getattribute__": model(f"{SOURCE}{INITIALIZE}    def __getattribute__(self, name): return lambda *given: None"),
    "set in a roundabout way": model(
        f"{SOURCE}{COMPLETE}pass\n"
        "type.__setattr__(TritonPythonModel, 'auto_complete_config', staticmethod(lambda c: c))"
    ),
    "another name": model(f"{SOURCE.replace('Triton', '')}TritonPythonModel = PythonModel"),
    "a configuration": model(f"{SOURCE}{COMPLETE}c.set_max_batch_size(0)\n        return c"),
    "a helper": {**model(f"from .text import clean\nimport other\n{SOURCE}"), "1/text.py": "clean = 1", "other.py": ""},
    "a shadowed helper": {**model(f"import text\n{SOURCE}"), "1/text.py": "", "text.py": "("},
    "what the server hands to initialize": {
        **model(
            f"{READS}{SOURCE}    def initialize(self, args):\n"
            "        [args[f'model_{x}'] for x in ('name', 'version', 'instance_kind', 'instance_name')]\n"
            "        args['model_instance_device_id'], Path(args['model_repository'] + '/labels.txt').read_text()\n"
            "        c = json.loads(args['model_config'])\n"
            "        c['name'], c['max_batch_size'], c['input'][0]['dims'], c['output'][0]['data_type']\n"
            "        c['parameters'], c['instance_group'], c['version_policy'], c['model_warmup'], c['backend']"
        ),
        "labels.txt": "",
    },
    "a helper that need not be there, in a method": model(
        f"{SOURCE}    def initialize(self, args):\n        try:\n            from .text import clean\n"
        "        except ImportError: pass"
    ),
    "classes of odd bases": model(
        "from typing import NamedTuple\nclass A(NamedTuple):\n    a: int\nclass B(int): __slots__ = ()\n"
        "class C(Exception): pass\nclass D(C, ValueError): pass\nclass E(type): pass\nclass F(metaclass=E): a = 1\n"
        f"class G:\n    def __init_subclass__(cls, x): pass\nclass H(G, x=1): pass\n{SOURCE}"
    ),
    "a named tuple with a default": model(
        f"from typing import NamedTuple\nclass TritonPythonModel(NamedTuple):\n    path: str = ''\n{EXECUTE}"
    ),
    "a helper that need not be there": model(f"try:\n    from .text import clean\nexcept ImportError: pass\n{SOURCE}"),
    "no name before the suffix": named(".py"),
    "a module in a directory": named("sub/model.py"),
    "characters that a shell takes as they are": named("a,b=c%d^e@f+g!h~i#j$.py"),
    "a pattern that matches itself": named("a*[b]?.py"),
    "braces without a comma": named("a{b}.py"),
    "a directory beside the file": {"1/model/labels.txt": ""},
}


@pytest.mark.parametrize("files", LOADED.values(), ids=LOADED)
def test_the_python_backend_loads_what_is_no_error(tmp_path: Path, python_judge: Judge, files: Files) -> None:
    repository = write(tmp_path / "repository", files)
    assert repository.check() == ()
    verdict = python_judge(repository.root, ["model"])
    assert verdict.loaded, verdict.said
