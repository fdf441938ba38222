"""The pages of the rules, docs/rules/<area>.md and the index docs/rules.md, from the rules themselves."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from tools.generate import Files, Generator

from cdk_triton.checks import Rule, documented_rules

PAGE = "docs/rules.md"
FOLDER = "docs/rules"
GROUPS = {
    "CT0": ("files", "A model's files, and the checks themselves"),
    "CT1": ("files", "A model's files, and the checks themselves"),
    "CT2": ("configuration", "The meaning of a configuration"),
    "CT3": ("ensembles", "Ensembles"),
    "CT4": ("endpoints", "Single-model and multi-model endpoints"),
    "CT5": ("endpoints", "Single-model and multi-model endpoints"),
    "CT6": ("platform", "The platform, SageMaker's limits, and TensorRT"),
    "CT7": ("platform", "The platform, SageMaker's limits, and TensorRT"),
    "CT8": ("frameworks", "PyTorch, tree models and DALI"),
}
"""Beginning of a code → the name of its page, and the title."""
HEAD = """\
<!-- written by `make generate` -->
# The rules

`cdk-triton validate` and the constructs look for these faults; `cdk-triton explain CT101` prints the text of a rule. A
finding is an **error** if the server or SageMaker would reject the repository, or would not serve it as you intend. If
this depends on something that the checks cannot see, such as the packages of your own image, the finding is a
**warning**, which you can [acknowledge](validate.md#acknowledge-a-warning). A code keeps its meaning, and the code of a
removed rule is not used again. Codes that begin with `cdk-triton:` are [the codes of the
constructs](construct_codes.md).
"""
AREA = """\
<!-- written by `make generate` -->
# {title}

Each example is a small repository, file by file. The tests check that the one below *Example* has the finding, and that
the one below *Instead* does not. *Instead* shows only the files that differ. [All rules](../rules.md) are in one list.

To run an example that shows no version directory of a model, add the directory `1` to the model. Otherwise, the command
reports [CT110](files.md#ct110), and usually not the finding that the example shows. Put the file that the backend loads
into `1` ([CT120](files.md#ct120)): for a Python model, a `model.py` with the class `TritonPythonModel` and its method
`execute`; for an ONNX model, a `model.onnx` with the tensors of `config.pbtxt`; for an ensemble, an empty file
`.gitkeep`. For a TensorRT model, write `produced = ["model/1/model.plan"]` into `cdk-triton.toml` instead.

An `.onnx` file is shown in ONNX's text form, a `.pt` file as the signature of its `forward`, a `.tar.gz` file as a list
of its members, and a large file, or one that a build writes, as a description in parentheses. A line `# environment=`
shows an argument of the constructs, which the command does not have.
"""
KNOWN_LIMITS = """\
## Limits of the checks

The checks read files, tables and literals, and do not run a model. So they do not find out:

* how much GPU memory a model uses;
* the requirements of your own backend;
* the models and tensors that a Python model calls by a computed name (BLS);
* whether the numbers in a tensor have the meaning that the model expects.

The rules check the `config.pbtxt` of every model. What they read of the model's files depends on the backend, and
`cdk-triton validate` [lists the files that it did not read](validate.md#what-is-not-read):

| backend | the rules read | the rules do not read |
|---|---|---|
| ensemble | everything: steps, maps, and the tensors of the models | |
| `onnxruntime` | the graph with its inputs, outputs and operators; whether the files of weights exist and are long \
enough | the values of the weights; files in the ORT format |
| `python` | the source of the model and of its own modules, without running it; the names of the files in a packed \
environment of up to 256 MiB | what the code computes; the methods of a class that another module defines; compiled \
modules |
| `tensorrt` | the network that the plan is built from: that of a recipe, or a `model.onnx` beside the plan | the \
plan, except its first bytes |
| `pytorch` | the kind of the file; the arguments and the result of `forward` in TorchScript; in a compiled PyTorch 2 \
archive, the call specification and the kind of device | the code and the weights of the model; `model.py` |
| `fil` | the format of the file, the version that wrote it, its features, classes and objective | the trees; files of \
more than 64 MiB |
| `dali` | the decorators, the inputs, the outputs and the names of `dali.py` or of a recipe's source; the inputs and \
outputs of `model.dali` | the operators. The build of the recipe `DaliPipeline` runs DALI |
| `openvino` | whether `model.xml` and its `.bin` file exist | both files |
| `tensorflow` | whether the saved model or the graph exists | their contents |
| any other | | the library and all files of the model |

If a release is newer than the schema of the checks, a field that the schema does not have is only a warning (CT102).
The text of a rule says what its *Limits* are. [Not verified on AWS](not_verified.md) lists the claims that no test has
checked on AWS.
"""


def pages(rules: Iterable[Rule]) -> Files:
    """Return the index, and a page for each area."""
    made: dict[str, str] = {}
    index = [HEAD]
    for (name, title), group in groupby(rules, key=lambda rule: GROUPS[rule.code[:3]]):
        of_area = tuple(group)
        made[f"{FOLDER}/{name}.md"] = "\n".join([AREA.format(title=title), *map(_section, of_area)])
        index.append(f"## [{title}](rules/{name}.md)\n\n{_table(name, of_area)}")
    made[PAGE] = "\n".join([*index, KNOWN_LIMITS])
    return {path: text.encode() for path, text in made.items()}


def _table(name: str, rules: Iterable[Rule]) -> str:
    rows = [_row(rule, f"rules/{name}.md#{rule.code.lower()}") for rule in rules]
    return "\n".join(["| code | severity | the fault |", "|---|---|---|", *rows, ""])


def _row(rule: Rule, address: str) -> str:
    return f"| [{rule.code}]({address}) | {rule.severity} | {rule.title} |"


def _section(rule: Rule) -> str:
    source = f" [Source]({rule.source})." if rule.source else ""
    head = f"## {rule.code}\n\n**{rule.title}** · {rule.severity} · {rule.condition}{source}"
    return f"{head}\n\n{rule.documentation.markdown()}\n"


def _files() -> Files:
    return pages(documented_rules())


GENERATOR = Generator(_files)
