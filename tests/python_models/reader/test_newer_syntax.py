"""Python's source without newer syntax: an older parser takes what is sound, and nothing else."""

from __future__ import annotations

import ast
import sysconfig
from pathlib import Path

import pytest

from cdk_triton.python_models.reader.newer_syntax import without_newer_syntax


@pytest.mark.parametrize(
    "source",
    [
        'x = f"{d["a"]}"',
        """x = f"{'"'}" """,
        'x = f"""{\n a + "}" # c }\n}"""',
        'x = f"{x!r:>{w}}" "b" f"{y}"',
        'x = f"{f"{f"{1}"}"}"',
        'x = f"{a:{"b"}}"',
        "x = f\"{'\\n'.join(a)}\"",
        'x = f"{x = !r:>10} {x != y} {*a,} {{}} {x:%H:%M} {(y:=3)} {x:=3}"',
        'x = f"\\N{DASH} {a["b"]}"',
        "type X = int",
        "type X[T: (int, str), *Ts, **P] = list[T]",
        "if a: type X = int; y = 3",
        "def f[T: (int, str)](a: T) -> T: return a",
        "class A[\n  T\n]: pass",
        "async def f[**P](a): pass",
        "type = 3\nprint(type)\nx = type(a)",
        "s = 'type X = 3'  # def f[T](",
    ],
)
def test_newer_syntax_is_taken_out(source: str) -> None:
    ast.parse(without_newer_syntax(source))


@pytest.mark.parametrize(
    "source",
    [
        'f"{}"',
        'f"{a b}"',
        'f"{x!z}"',
        'f"{x!}"',
        'f"{x"',
        'f"}"',
        'f"{(x}"',
        'f"{f"{}"}"',
        'f"{x:{}}"',
        'f"{lambda x: 1}"',
        "type X =",
        "def f[T: pass",
        "def f[T](a) return a",
        'print f"{x}"',
    ],
)
def test_faults_of_every_python_remain(source: str) -> None:
    with pytest.raises(SyntaxError):
        ast.parse(without_newer_syntax(source))


def test_lines_keep_their_numbers() -> None:
    source = 'a = f"""{\n"b"}"""\nclass A[\nT]: pass\ntype X = int\nreturn'
    assert ast.parse(without_newer_syntax(source)).body[-1].lineno == 6


@pytest.mark.slow
def test_older_source_stays_sound() -> None:
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("[a-f]*.py")):
        ast.parse(without_newer_syntax(path.read_text(encoding="utf-8")))
