"""Whether Python rejects a class statement: Python itself is asked, with generated classes."""

from __future__ import annotations

import ast

from hypothesis import given
from hypothesis import strategies as st

from cdk_triton.python_models.reader.definitions import rejected_class

NAMES = st.sampled_from(["A", "B", "C", "bool", "int", "object", "dict", "ValueError", "type"])
BODIES = st.sampled_from(["pass", "__slots__ = 'a'", "a = 1", "__slots__ = 'a'; a = 1", "__init_subclass__ = print"])


@given(st.lists(st.tuples(NAMES, st.lists(NAMES, max_size=3), BODIES)))
def test_python_says_the_same(classes: list[tuple[str, list[str], str]]) -> None:
    statements = [f"class {name}({', '.join(bases)}): {body}\n" for name, bases, body in classes]
    found = rejected_class(ast.parse("".join(statements)).body)
    line, error = first_error(statements)
    if isinstance(error, NameError):
        return  # of a base that nothing defines: another rule's
    if "__init_subclass__" in "".join(statements):  # such a class decides about those below it, and nothing is said
        assert found is None or error is not None
    elif error is None:
        assert found is None
    else:
        said = f"{type(error).__name__}: {' '.join(str(error).split())}"
        assert found is not None
        assert (found.line, found.said) == (line, said)


def first_error(statements: list[str]) -> tuple[int, Exception | None]:
    names: dict[str, object] = {"__name__": "model"}
    for line, statement in enumerate(statements, 1):
        try:
            exec(statement, names)
        except (NameError, TypeError, ValueError) as error:
            return line, error
    return 0, None
