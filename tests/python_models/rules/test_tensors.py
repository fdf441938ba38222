"""The rules CT150 and CT193: whether a Python model reads and makes the tensors of its configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from golden_messages import Messages, Place
    from sample_repositories import Write

NAMES = "ids = other = partial = decode = answer = None\n"
HEAD = f"import triton_python_backend_utils as pb; {NAMES}"
CLASS = HEAD + "class TritonPythonModel:\n    def execute(self, requests):\n"
TAKE = "pb.get_input_tensor_by_name(request, 'TEXT')"
TYPO = "pb.get_input_tensor_by_name(request, 'TEXTT')"
ANSWER = "        return [pb.InferenceResponse([pb.Tensor('token_ids', ids)])]\n"
STRAY = "        return [pb.InferenceResponse([pb.Tensor('token_idz', ids)])]\n"


def each(*statements: str) -> str:
    """A model that does this with each request."""
    lines = "".join(f"            {statement}\n" for statement in statements)
    return f"{CLASS}        for request in requests:\n{lines}{ANSWER}"


OUTPUTS = "requested_output_names=[]"


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(each(f"text = {TAKE}.as_numpy()"), id="all of the configuration"),
        pytest.param(each(f"tensor = {TYPO}", "if tensor is not None: tensor.as_numpy()"), id="an optional input"),
        pytest.param(each(f"tensor = {TYPO}", "text = tensor.as_numpy() if tensor else ''"), id="in an expression"),
        pytest.param(each(f"tensor = {TYPO}", "if not tensor: continue", "tensor.as_numpy()"), id="asked for with not"),
        pytest.param(each(f"tensor = {TYPO}", "ids = tensor and tensor.as_numpy()"), id="asked for with and"),
        pytest.param(each(f"if requests[1:]: {TYPO}.as_numpy()"), id="under a condition"),
        pytest.param(each(f"try: {TYPO}.as_numpy()", "except AttributeError: pass"), id="which may fail"),
        pytest.param(each(f"ids = decode({TYPO})"), id="handed on"),
        pytest.param(each("pb.get_input_tensor_by_name(request, request.request_id()).as_numpy()"), id="computed"),
        pytest.param(each("other.get_input_tensor_by_name(request, 'TEXTT').as_numpy()"), id="of somebody else's"),
        pytest.param(each("pb.get_output_tensor_by_name(request, 'TEXTT').as_numpy()"), id="of another model's answer"),
        pytest.param(CLASS + ANSWER + "        pb.Tensor('spare', ids)\n", id="one more than the outputs"),
        pytest.param(CLASS + STRAY + "        [pb.Tensor(name, ids) for name in dir(ids)]\n", id="computed outputs"),
        pytest.param(CLASS + STRAY + "        make = pb.Tensor\n", id="made under another name"),
        pytest.param(CLASS + STRAY + "        answer(pb)\n", id="made elsewhere"),
        pytest.param(
            CLASS + STRAY + "        from triton_python_backend_utils import Tensor\n", id="made by the class alone"
        ),
        pytest.param(
            CLASS
            + STRAY
            + f"        pb.InferenceRequest(model_name='bert', inputs=[pb.Tensor('token_ids', ids)], {OUTPUTS})\n",
            id="for another model",
        ),
        pytest.param(CLASS + STRAY + "        partial(pb.InferenceRequest, model_name='bert')\n", id="for some model"),
        pytest.param(
            CLASS + STRAY + "    @staticmethod\n    def auto_complete_config(config): return config\n", id="completed"
        ),
        pytest.param(CLASS.replace(HEAD, f"import other as pb; {NAMES}") + STRAY, id="another module"),
    ],
)
def test_sound(write: Write, source: str) -> None:
    assert write({"preprocess/1/model.py": source}).check() == ()


@pytest.mark.parametrize(
    ("source", "meant"),
    [
        pytest.param(each(f"text = {TYPO}.as_numpy()"), "TEXT", id="an input"),
        pytest.param(each(f"tensor = {TYPO}", "text = tensor.as_numpy()"), "TEXT", id="as a variable"),
        pytest.param(each(f"tensor: pb.Tensor = {TYPO}", "text = tensor.as_numpy()"), "TEXT", id="with its type"),
        pytest.param(each(f"{TYPO}.as_numpy()", f"{TYPO}.as_numpy()"), "TEXT", id="twice"),
        pytest.param(
            CLASS + f"        texts = [{TYPO}.as_numpy() for request in requests]\n" + ANSWER,
            "TEXT",
            id="in a comprehension",
        ),
        pytest.param(
            CLASS + ANSWER + f"    def take(self, request):\n        return {TYPO}.as_numpy()\n",
            "TEXT",
            id="in another method",
        ),
        pytest.param(
            each(f"text = {TYPO}.as_numpy()")
            + f"        pb.InferenceRequest(model_name='bert', inputs=list(), {OUTPUTS})\n",
            "TEXT",
            id="of a request to execute, beside one to another model",
        ),
        pytest.param(
            each(f"text = {TYPO}.as_numpy()").replace(" as pb", "").replace("pb.", "triton_python_backend_utils."),
            "TEXT",
            id="by the long name",
        ),
        pytest.param(CLASS + STRAY, "token_ids", id="an output"),
        pytest.param(
            "import c_python_backend_utils as c; " + CLASS + STRAY.replace("pb.Tensor", "c.Tensor"),
            "token_ids",
            id="of the module of the classes",
        ),
        pytest.param(
            CLASS + STRAY.replace("pb.Tensor", "pb.Tensor.from_dlpack"),
            "token_ids",
            id="from another library",
        ),
        pytest.param(
            CLASS + "        ids: list[pb.Tensor] = []\n" + STRAY,
            "token_ids",
            id="beside an annotation",
        ),
        pytest.param(
            CLASS + STRAY.replace("token_idz", "x"),
            "token_ids",
            id="an output of quite another name",
        ),
    ],
)
def test_faults(messages: Messages, write: Write, source: str, meant: str) -> None:
    findings = write({"preprocess/1/model.py": source}).check()
    assert messages.of(findings) == [("CT150", "preprocess/1/model.py", "")]
    assert meant in findings[0].fix


TYPED = {
    "model/config.pbtxt": """backend: "python" input { name: "TEXT" data_type: TYPE_STRING dims: 1 }
        output { name: "SCORE" data_type: TYPE_FP32 dims: 1 } output { name: "HALF" data_type: TYPE_BF16 dims: 1 }"""
}
NUMPY = f"import numpy as np\n{CLASS}"


def made(*statements: str, name: str = "SCORE") -> str:
    """A model that answers with a tensor of `scores`."""
    lines = "".join(f"        {statement}\n" for statement in statements)
    return f"{NUMPY}{lines}        return [pb.InferenceResponse([pb.Tensor('{name}', scores)])]\n"


@pytest.mark.parametrize(
    ("source", "fix"),
    [
        pytest.param(made("scores = np.array([0.5])"), "make the array with dtype=np.float32", id="numbers"),
        pytest.param(made("scores = np.zeros(1)"), "make the array with dtype=np.float32", id="zeros"),
        pytest.param(made("scores = ids.astype(np.int64)"), "make the array with dtype=np.float32", id="converted"),
        pytest.param(
            made("scores = np.zeros(1, np.float32)", name="HALF"),
            "make a tensor of the type BF16 with pb_utils.Tensor.from_dlpack()",
            id="a type that numpy does not have",
        ),
        pytest.param(
            f"{NUMPY}        return [self.answer(each) for each in requests]\n"
            "    def answer(self, request):\n"
            "        return pb.InferenceResponse([pb.Tensor('SCORE', np.array([0.5]))])\n",
            "make the array with dtype=np.float32",
            id="in another method",
        ),
    ],
)
def test_another_type(messages: Messages, write: Write, source: str, fix: str) -> None:
    findings = write({**TYPED, "model/1/model.py": source}, base={}).check()
    assert messages.of(findings) == [("CT150", "model/1/model.py", "")]
    assert findings[0].fix == fix


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(made("scores = np.array([0.5], np.float32)"), id="of the configuration"),
        pytest.param(made("scores = np.array([ids])"), id="not known"),
        pytest.param(made("scores = np.zeros(1)", "scores = scores.astype(np.float32)"), id="set anew"),
        pytest.param(made("scores = np.zeros(1)", "scores.dtype = np.float32"), id="changed in place"),
        pytest.param(
            made("scores = np.array([0.5])")
            + f"        pb.InferenceRequest(model_name='bert', inputs=[], {OUTPUTS})\n",
            id="perhaps for another model",
        ),
    ],
)
def test_the_type_of_the_configuration(write: Write, source: str) -> None:
    findings = write({**TYPED, "model/1/model.py": source}, base={}).check()
    assert [finding for finding in findings if finding.code == "CT150"] == []


ATTRIBUTE = CLASS.replace(
    "    def execute", "    def initialize(self, args):\n        self.names = {}\n    def execute"
)
TAKEN = "ids = decode(pb.get_input_tensor_by_name(request, self.names))"


@pytest.mark.parametrize(
    ("source", "is_found"),
    [
        pytest.param(each("text = pb.get_input_tensor_by_name(request, ['TEXT'])"), True, id="a list"),
        pytest.param(each("if ids: pb.get_input_tensor_by_name(request, name=('TEXT',))"), True, id="a tuple"),
        pytest.param(each("names = ['TEXT']", TAKEN.replace("self.", "")), True, id="in a variable"),
        pytest.param(each(TAKEN).replace(CLASS, ATTRIBUTE.format("['TEXT']")), True, id="in an attribute"),
        pytest.param(each("text = pb.get_output_tensor_by_name(other, [])"), True, id="of another model's answer"),
        pytest.param(each(TAKEN).replace(CLASS, ATTRIBUTE.format("'TEXT'")), False, id="an attribute with a text"),
        pytest.param(each(TAKEN).replace(CLASS, ATTRIBUTE.format("args")), False, id="an attribute that is computed"),
        pytest.param(
            each("self.names = 'TEXT'", TAKEN).replace(CLASS, ATTRIBUTE.format("[]")),
            False,
            id="an attribute set twice",
        ),
        pytest.param(
            f"class Spec:\n    names: str\n{each(TAKEN).replace(CLASS, ATTRIBUTE.format('[]'))}",
            False,
            id="a field of another class",
        ),
        pytest.param(each(f"for name in ['TEXT']: {TAKEN.replace('self.names', 'name')}"), False, id="each of a list"),
        pytest.param(each("text = other.get_input_tensor_by_name(request, [])"), False, id="of somebody else's"),
    ],
)
def test_a_name_that_is_no_text(messages: Messages, write: Write, source: str, is_found: bool) -> None:
    findings = write({"preprocess/1/model.py": source}).check()
    assert messages.of(findings) == [("CT150", "preprocess/1/model.py", "")] * is_found


def test_a_method_that_may_get_a_request_to_another_model_is_not_judged(write: Write) -> None:
    source = CLASS + ANSWER + f"    def take(self, request):\n        return {TYPO}.as_numpy()\n"
    calling = source + f"        pb.InferenceRequest(model_name='bert', inputs=list(), {OUTPUTS})\n"
    assert write({"preprocess/1/model.py": calling}).check() == ()


@pytest.mark.parametrize(
    "more",
    [
        pytest.param(
            """sequence_batching { control_input { name: "TEXTT" control {
                 kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } } }""",
            id="a control",
        ),
        pytest.param(
            """sequence_batching { state {
                 input_name: "TEXTT" output_name: "token_idz" data_type: TYPE_INT32 dims: -1 } }""",
            id="a state",
        ),
        pytest.param(
            'batch_input { kind: BATCH_ELEMENT_COUNT target_name: "TEXTT" data_type: TYPE_FP32 source_input: "TEXT" }',
            id="a batch input",
        ),
    ],
)
def test_what_else_the_configuration_has(write: Write, sound: dict[str, str], more: str) -> None:
    config = sound["preprocess/config.pbtxt"] + more
    source = each(f"{TYPO}.as_numpy()")
    if "state {" in more:
        source = source.replace(ANSWER, STRAY)
    files = {"preprocess/config.pbtxt": config, "preprocess/1/model.py": source}
    assert "CT150" not in [finding.code for finding in write(files).check()]


@pytest.mark.parametrize("side", ["input", "output"])
def test_a_configuration_without_tensors_says_nothing_about_them(
    write: Write, sound: dict[str, str], side: str
) -> None:
    config = "".join(
        line for line in sound["preprocess/config.pbtxt"].splitlines(keepends=True) if not line.startswith(side)
    )
    source = each(f"{TYPO}.as_numpy()") if side == "input" else CLASS + STRAY
    findings = write({"preprocess/config.pbtxt": config, "preprocess/1/model.py": source}).check()
    assert "CT150" not in [finding.code for finding in findings]


OPTIONAL = {
    "model/config.pbtxt": (
        'backend: "python" input { name: "TEXT" data_type: TYPE_STRING dims: 1 optional: true } '
        'output { name: "token_ids" data_type: TYPE_INT64 dims: 1 }'
    )
}
REQUIRED = [("CT193", "model/1/model.py", "")]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param(each(f"text = {TAKE}.as_numpy()"), REQUIRED, id="used at once"),
        pytest.param(each(f"tensor = {TAKE}", "text = tensor.as_numpy()"), REQUIRED, id="used by its variable"),
        pytest.param(each(f"tensor = {TAKE}", "if tensor is not None: tensor.as_numpy()"), [], id="asked for"),
        pytest.param(each(f"if requests[1:]: {TAKE}.as_numpy()"), [], id="under a condition"),
        pytest.param(each(f"ids = decode({TAKE})"), [], id="handed on"),
        pytest.param(each("if partial: continue", f"{TAKE}.as_numpy()"), [], id="a request passed over"),
        pytest.param(each(f"tensor = {TAKE}", "match tensor:", "    case None: pass"), [], id="matched"),
        pytest.param(
            each(f"t = {TAKE}", "ids = t.as_numpy() if isinstance(t, object) else 8"), [], id="its type asked"
        ),
        pytest.param(each("with self.suppressed():", f"    {TAKE}.as_numpy()"), [], id="an error suppressed"),
        pytest.param(each("ids = request.inputs()", f"{TAKE}.as_numpy()"), [], id="the inputs of a request"),
        pytest.param(each("ids = decode(request, 'TEXT')", f"{TAKE}.as_numpy()"), [], id="named elsewhere"),
        pytest.param(
            each("ids = self.ids(request)") + f"    def ids(self, request): return {TAKE}.as_numpy()\n",
            [],
            id="a helper",
        ),
    ],
)
def test_an_optional_input(messages: Messages, write: Write, source: str, expected: list[Place]) -> None:
    repository = write({**OPTIONAL, "model/1/model.py": source}, base={})
    assert messages.of(each for each in repository.check() if each.code != "CT185") == expected


def test_an_input_that_is_not_optional(write: Write) -> None:
    files = {path: text.replace("optional: true", "") for path, text in OPTIONAL.items()}
    assert write({**files, "model/1/model.py": each(f"text = {TAKE}.as_numpy()")}, base={}).check() == ()
