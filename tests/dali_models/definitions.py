"""Definitions of pipelines, what the rules find in them, and whether DALI serialises them.

They have operators for the CPU only and no device, so that DALI can judge them on a machine without a GPU.
"""

from __future__ import annotations

from typing import NamedTuple

HEAD = """
import nvidia.dali.fn as fn
import nvidia.dali.types as types
from nvidia.dali import pipeline_def
from nvidia.dali.plugin.triton import autoserialize

"""
SERVED = "@autoserialize\n@pipeline_def(batch_size=8, num_threads=1, device_id=None)\n"
A = "fn.external_source(name='A')"
B = "fn.external_source(name='B')"
DECLARED = "fn.external_source(name='B', dtype=types.UINT8, ndim=1)"


class Case(NamedTuple):
    """A definition with a configuration.

    Attributes:
        source: the definition, without the imports of `HEAD`.
        found: the codes of the findings.
        inputs: the inputs of the configuration, each as `name type dims`.
        outputs: its outputs.
    """

    source: str
    found: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ("A UINT8 -1",)
    outputs: tuple[str, ...] = ("OUT UINT8 -1",)

    @property
    def text(self) -> str:
        """The file."""
        return HEAD + self.source

    @property
    def config(self) -> str:
        """The configuration."""
        sides = [("input", each) for each in self.inputs] + [("output", each) for each in self.outputs]
        tensors = [(side, *each.split(maxsplit=2)) for side, each in sides]
        entries = [
            f'{side} {{ name: "{name}" data_type: TYPE_{kind} dims: {dims} }}' for side, name, kind, dims in tensors
        ]
        return "\n".join(['backend: "dali"', "max_batch_size: 8", *entries])


def pipeline(*lines: str, decorators: str = SERVED, arguments: str = "") -> str:
    """A function with these lines."""
    return f"{decorators}def pipeline({arguments}):\n" + "".join(f"    {line}\n" for line in lines)


TWO_INPUTS = ("A UINT8 -1", "B UINT8 -1")
TWO_OUTPUTS = ("OUT UINT8 -1", "MORE UINT8 -1")

SOUND = {
    "one input": Case(pipeline(f"return {A}")),
    "no configured tensors": Case(pipeline(f"return {A}, {B}"), inputs=(), outputs=()),
    "a constant name": Case("NAME = 'A'\n" + pipeline("return fn.external_source(name=NAME)")),
    "a local name": Case(pipeline("name = 'A'", "return fn.external_source(name=name)")),
    "a computed name": Case(pipeline("return fn.external_source(name='a'.upper())")),
    "dims of the pipeline": Case(pipeline(f"return {DECLARED}"), inputs=("B INVALID []",)),
    "computed dims": Case(pipeline("return fn.external_source(name='A', ndim=len('a'))"), inputs=("A UINT8 []",)),
    "names of a loop": Case(
        pipeline("return tuple(fn.external_source(name=name) for name in ('A', 'B'))"),
        inputs=TWO_INPUTS,
        outputs=TWO_OUTPUTS,
    ),
    "a helper": Case(
        f"def source():\n    return {A}\n" + pipeline(f"return source(), {B}"), (), TWO_INPUTS, TWO_OUTPUTS
    ),
    "a helper that drops its argument": Case(
        "def none(x):\n    return 1\n" + pipeline(f"a = {A}", f"b = {B}", "c = none(b)", "return a")
    ),
    "an unused input": Case(pipeline(f"a = {A}", f"b = {B}", "c = fn.cast(b + 1, dtype=types.FLOAT)", "return a")),
    "an input that is set anew": Case(pipeline(f"x = {B}", f"x = {A}", "return x")),
    "an input in a list": Case(pipeline("found = []", f"found.append({A})", "return tuple(found)")),
    "declared": Case(
        pipeline(
            "return fn.external_source(name='A', dtype=types.UINT8, ndim=1)",
            decorators="@autoserialize\n@pipeline_def(batch_size=8, output_dtype=types.UINT8, output_ndim=[1])\n",
        )
    ),
    "a declared layout": Case(
        pipeline("return fn.external_source(name='A', layout='HWC')"),
        (),
        ("A UINT8 [-1,-1,3]",),
        ("OUT UINT8 [-1,-1,3]",),
    ),
    "other names of the decorators": Case(
        "import nvidia.dali as dali\nimport nvidia.dali.plugin.triton as triton\n"
        + pipeline(f"return {A}", decorators="@triton.autoserialize\n@dali.pipeline_def(batch_size=8)\n")
    ),
    "a decorator without @": Case(
        pipeline(f"return {A}", decorators="@pipeline_def(batch_size=8)\n") + "autoserialize(pipeline)\n"
    ),
    "a default": Case(pipeline(f"return fn.cast({A}, dtype=kind)", arguments="kind=types.UINT8")),
    "a helper below": Case(pipeline(f"return below({A})") + "def below(x):\n    return x\n"),
    "a script": Case(pipeline(f"return {A}") + "if __name__ == '__main__':\n    unknown()\n"),
    "a branch that does not run": Case(pipeline(f"a = {A}", "if False:", "    return unknown", "return a")),
    "two branches": Case(
        pipeline(
            "if True:", f"    a = {A}", "else:", "    a = fn.external_source(name='A', dtype=types.FLOAT)", "return a"
        )
    ),
    "several results of an operator": Case(
        pipeline(f"return fn.decoders.audio({A})[0], fn.external_source(name='B')"), (), TWO_INPUTS, TWO_OUTPUTS
    ),
}

FAULTY = {
    "no Python": Case("def pipeline(:", ("CT870",)),
    "no mark": Case(pipeline(f"return {A}", decorators="@pipeline_def(batch_size=8)\n"), ("CT871",)),
    "two marks": Case(pipeline(f"return {A}") + pipeline(f"return {A}").replace("pipeline()", "second()"), ("CT871",)),
    "the decorators in the other order": Case(
        pipeline(f"return {A}", decorators="@pipeline_def(batch_size=8)\n@autoserialize\n"), ("CT872",)
    ),
    "a decorator with parentheses": Case(
        pipeline(f"return {A}", decorators="@autoserialize()\n@pipeline_def(batch_size=8)\n"), ("CT872",)
    ),
    "no decorator of DALI": Case(pipeline(f"return {A}", decorators="@autoserialize\n"), ("CT872",)),
    "a required argument": Case(pipeline(f"return {A}", arguments="size"), ("CT872",)),
    "a required keyword": Case(pipeline(f"return {A}", arguments="*, size"), ("CT872",)),
    "a list of outputs": Case(pipeline(f"a = {A}", "return [a]"), ("CT872",)),
    "a list in a tuple": Case(pipeline(f"return {A}, [{B}]"), ("CT872",), TWO_INPUTS, TWO_OUTPUTS),
    "no output": Case(pipeline(f"a = {A}"), ("CT872",)),
    "a function of Python": Case(pipeline(f"return fn.python_function({A}, function=lambda x: x)"), ("CT872",)),
    "an undefined name": Case(pipeline("return fn.cast(images, dtype=types.UINT8)"), ("CT873",)),
    "an undefined decorator": Case(
        pipeline(f"return {A}", decorators="@autoserialise\n@pipeline_def(batch_size=8)\n"), ("CT871", "CT873")
    ),
    "a relative import": Case("from . import helpers\n" + pipeline(f"return {A}"), ("CT873",)),
}

CONTRADICTING = {
    "an input that the pipeline lacks": Case(pipeline(f"return {A}"), ("CT874",), TWO_INPUTS),
    "an input that no output needs": Case(
        pipeline(f"a = {A}", f"b = {B}", "c = fn.cast(b, dtype=types.FLOAT)", "return a"), ("CT874",), TWO_INPUTS
    ),
    "an input of a dropped call": Case(
        pipeline(f"a = {A}", f"b = {B}", "fn.cast(b, dtype=types.FLOAT)", "return a"), ("CT874",), TWO_INPUTS
    ),
    "another name": Case(pipeline(f"return {B}"), ("CT874",)),
    "another name of a video": Case(
        pipeline("return fn.experimental.inputs.video(name='B', sequence_length=5)"), ("CT874",)
    ),
    "no name": Case(pipeline("return fn.external_source()"), ("CT874", "CT876")),
    "too many outputs": Case(pipeline(f"return fn.cast({A}, dtype=types.UINT8)"), ("CT874",), outputs=TWO_OUTPUTS),
    "too many outputs for the declared": Case(
        pipeline(f"return {A}", decorators="@autoserialize\n@pipeline_def(batch_size=8, output_ndim=[1])\n"),
        ("CT874",),
        outputs=TWO_OUTPUTS,
    ),
    "type of an input": Case(pipeline("return fn.external_source(name='A', dtype=types.FLOAT16)"), ("CT874",)),
    "type of an input by a name": Case(
        "from nvidia.dali.types import DALIDataType as T\n"
        + pipeline("kind = T.FLOAT16", "return fn.external_source(name='A', dtype=kind)"),
        ("CT874",),
    ),
    "an input that nothing describes": Case(pipeline(f"return {A} + {B}"), ("CT874",)),
    "an input without dims": Case(pipeline(f"return {A}"), ("CT874",), inputs=("A UINT8 []",)),
    "an input without a type": Case(pipeline(f"return {A}"), ("CT874",), inputs=("A INVALID -1",)),
    "dims of an input": Case(pipeline("return fn.external_source(name='A', ndim=3)"), ("CT874",)),
    "dims of an input by a name": Case(
        "NDIM = 3\n" + pipeline("return fn.external_source(name='A', ndim=NDIM)"), ("CT874",)
    ),
    "name, type and dims by names with annotations": Case(
        "NAME: str = 'A'\nKIND: types.DALIDataType = types.FLOAT16\n"
        + pipeline("ndim: int = 3", "return fn.external_source(name=NAME, dtype=KIND, ndim=ndim)"),
        ("CT874", "CT874"),
    ),
    "type and dims by names of one assignment": Case(
        pipeline("kind, ndim = types.FLOAT16, 3", "return fn.external_source(name='A', dtype=kind, ndim=ndim)"),
        ("CT874", "CT874"),
    ),
    "layout of an input": Case(pipeline("return fn.external_source(name='A', layout='HWC')"), ("CT874",)),
    "type of an output by a name": Case(
        "KIND = types.FLOAT\n"
        + pipeline(
            f"return {A}",
            decorators="@autoserialize\n@pipeline_def(batch_size=8, output_dtype=[KIND], output_ndim=1)\n",
        ),
        ("CT874",),
    ),
    "type and dims of outputs": Case(
        pipeline(
            f"a = {A}",
            "return a, a",
            decorators="@autoserialize\n@pipeline_def(batch_size=8, output_dtype=[None, types.FLOAT], output_ndim=2)\n",
        ),
        ("CT874", "CT874", "CT874"),
        outputs=TWO_OUTPUTS,
    ),
}

COMPLETED = {
    "too few inputs": Case(pipeline(f"return {A} + {DECLARED}"), ("CT875",)),
    "too few inputs, one with a computed type": Case(
        pipeline(f"return {A} + {DECLARED.replace('UINT8', 'UINT8 or None')}"), ("CT875",)
    ),
    "too few outputs": Case(pipeline(f"a = {A}", "return a, a"), ("CT875",)),
    "a callback": Case(pipeline("return fn.external_source(name='A', source=lambda: [1])"), ("CT876",)),
    "a callback by position": Case(pipeline("return fn.external_source(lambda: [1])"), ("CT874", "CT876")),
}

CAST = "fn.cast(a, dtype=types.FLOAT)"
OTHER_TYPE = {
    "the type of an operator": Case(pipeline(f"a = {A}", f"return {CAST}"), ("CT878",)),
    "the type of an operator by a variable": Case(pipeline(f"a = {A}", f"a = {CAST}", "return a"), ("CT878",)),
    "the type of an operator by a name": Case(
        "KIND = types.FLOAT\n" + pipeline(f"return fn.cast({A}, dtype=KIND)"), ("CT878",)
    ),
    "the type of the second operator": Case(
        pipeline(f"a = {A}", f"b = {CAST}", "return a, b"), ("CT878",), outputs=TWO_OUTPUTS
    ),
    "the same type": Case(pipeline(f"a = {A}", f"return {CAST}"), outputs=("OUT FP32 -1",)),
    "the type of an earlier operator": Case(
        pipeline(f"a = {A}", f"b = {CAST}", "return fn.cast(b, dtype=types.UINT8)")
    ),
    "the type of an operator that may not run": Case(
        pipeline(f"a = {A}", "if len([]):", f"    a = {CAST}", "return a")
    ),
    "an operator without a type": Case(pipeline(f"a = {A}", "return fn.pad(a)")),
    "a configuration without a type": Case(pipeline(f"a = {A}", f"return {CAST}"), outputs=("OUT INVALID -1",)),
}

READER = "fn.readers.file(files=['picture'], name='reader')"
WITHOUT_INPUT = {
    "a reader": Case(pipeline(f"encoded, labels = {READER}", "return encoded"), ("CT877",), ()),
    "a reader, and an input that it lacks": Case(
        pipeline(f"encoded, labels = {READER}", "return encoded"), ("CT877", "CT874")
    ),
    "a reader, and an input that no output needs": Case(
        pipeline(f"a = {A}", f"encoded, labels = {READER}", "return encoded"), ("CT877",), ()
    ),
    "constants": Case(pipeline("return fn.random.uniform(range=(0.0, 1.0))"), ("CT877",), ()),
    "a reader beside an input": Case(pipeline(f"labels = {READER}[1]", f"return {A}, labels"), outputs=TWO_OUTPUTS),
}
