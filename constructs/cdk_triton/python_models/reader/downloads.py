"""The files that a Python source certainly downloads while its model loads. It is parsed, never executed."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from cdk_triton.python_models.reader.known_functions import dotted

__all__ = ["VARIABLES", "downloads"]

_FUNCTIONS: Final = frozenset(
    {
        "huggingface_hub.hf_hub_download",
        "huggingface_hub.snapshot_download",
        "nltk.download",
        "torch.hub.load",
        "torch.hub.load_state_dict_from_url",
        "urllib.request.urlretrieve",
    }
)
_HUGGING_FACE: Final = ("diffusers.", "peft.", "tokenizers.", "transformers.")
# Arguments with which these functions may find the file on the disk.
_ON_DISK: Final = frozenset({"cache_dir", "download_dir", "local_dir", "local_files_only", "source", None})
VARIABLES: Final = ("HF_", "NLTK_", "TORCH_HOME", "TRANSFORMERS_")
"""The beginnings of the variables of these libraries that name a directory, or switch downloads off."""


def downloads(nodes: Sequence[ast.AST], imported: Mapping[str, str]) -> frozenset[tuple[int, str]]:
    """The line and the text of each call in a method `initialize` that downloads a file whose name is literal.

    The result omits calls that may not run, whose error is handled, or that may find the file on the disk.

    Args:
        nodes: the nodes of the module.
        imported: what its names are imported as.
    """
    constants = (node.value for node in nodes if isinstance(node, ast.Constant))
    if any(isinstance(value, str) and value.startswith(VARIABLES) for value in constants):
        return frozenset()
    methods = (node for node in nodes if isinstance(node, ast.FunctionDef) and node.name == "initialize")
    calls = (call for method in methods for call in _certain_calls(method.body))
    return frozenset((call.lineno, text) for call in calls if (text := _download(call, imported)))


def _certain_calls(statements: Sequence[ast.stmt]) -> Iterator[ast.Call]:
    """The calls in statements that run in every case."""
    for statement in statements:
        if isinstance(statement, ast.With):
            yield from _certain_calls(statement.body)
        elif isinstance(statement, ast.Assign | ast.AnnAssign | ast.Expr):
            nodes = list(ast.walk(statement))
            if not any(isinstance(node, ast.IfExp | ast.BoolOp | ast.Lambda) for node in nodes):
                yield from (node for node in nodes if isinstance(node, ast.Call))
        elif not isinstance(statement, ast.AugAssign | ast.Import | ast.ImportFrom | ast.FunctionDef):
            return  # what follows may not run, or may find what this has made


def _download(call: ast.Call, imported: Mapping[str, str]) -> str:
    """The call as a text; "" if it may need no download."""
    name = dotted(call.func, imported)
    if not call.args or any(keyword.arg in _ON_DISK for keyword in call.keywords):
        return ""
    match call.args[0]:
        case ast.Constant(value=str(text)) if text and not text.startswith(("/", ".", "~")):
            is_loader = name.startswith(_HUGGING_FACE) and name.endswith(".from_pretrained")
            return f"{name}({text!r})" if is_loader or name in _FUNCTIONS else ""
    return ""
