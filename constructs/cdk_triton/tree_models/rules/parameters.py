"""CT810 to CT814: the parameters of the backend `fil`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cdk_triton._wording import did_you_mean, in_words, nearest
from cdk_triton.checks.registry import Problem
from cdk_triton.checks.sources import backend, rapids_triton
from cdk_triton.tree_models.fil_models import FilModel, fil_model_rule
from cdk_triton.tree_models.parameters import formats, number_in, release_knows, word
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.schema import ModelConfig, enum_name

_STATE = "cpp/include/rapids_triton/model/shared_state.hpp"
_ALLOWS_UNKNOWN_SINCE = "23.11"  # commit b0b5482 of fil_backend
_STRICT_BOOLEANS_SINCE = "23.06"  # commit 603db11 of rapids-triton, which r23.06 of fil_backend takes first

_BOOLEANS = {
    "predict_proba": "",
    "xgboost_allow_unknown_field": _ALLOWS_UNKNOWN_SINCE,
    "use_experimental_optimizations": "",
}
"""Optional booleans → the release that reads them first."""

_LAYOUTS = ("depth_first", "breadth_first", "layered", "layered_children_together")
_ALGORITHMS = ("ALGO_AUTO", "NAIVE", "TREE_REORG", "BATCH_TREE_REORG")
_STORAGE_TYPES = ("AUTO", "DENSE", "SPARSE", "SPARSE8")


@dataclass(frozen=True)
class _Number:
    """A number that the backend reads.

    Attributes:
        default: what the backend takes instead of a text without a number.
        is_integer: whether it reads an integer.
    """

    default: str
    is_integer: bool = True


_NUMBERS = {
    "transfer_threshold": _Number("0"),
    "cpu_nthread": _Number("-1"),
    "threshold": _Number("", is_integer=False),
    "chunk_size": _Number("1"),
    "threads_per_tree": _Number("1"),
    "blocks_per_sm": _Number("0"),
}
_REMOVED = {"algo": "ALGO_AUTO", "threads_per_tree": "1", "storage_type": "AUTO", "blocks_per_sm": "0"}
"""Parameters that 25.09 no longer reads → their defaults, which change nothing."""

_ADDED = {"layout": "depth_first", "chunk_size": "1"}
"""Parameters that 25.09 reads first → their defaults."""

_NEW_NAMES = {"algo": "layout", "threads_per_tree": "chunk_size"}
_KNOWN = {"model_type", "is_classifier", "output_class", *_BOOLEANS, *_NUMBERS, *_REMOVED, *_ADDED}


@fil_model_rule(
    "CT810",
    Severity.ERROR,
    "a required parameter of FIL is missing",
    source=backend("fil_backend", "src/shared_state.h", 85, 96),
)
def missing_parameter(each: FilModel) -> Iterator[Problem]:
    """The backend `fil` needs to know whether a model is a classifier, and the threshold of a classifier.

    The server does not load a model without these parameters. From 25.09 on, the first one is `is_classifier`. Older
    releases know only its old name, `output_class`. 25.09 and newer releases accept the old name too, if its value is
    exactly `true` or `false`. A classifier also needs `threshold`, although FIL's documentation calls it optional. A
    classifier with several classes ignores its value.

    Example:
        # model/config.pbtxt
        backend: "fil"
        max_batch_size: 8
        input { name: "input__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "output__0" data_type: TYPE_FP32 dims: 1 }
        parameters { key: "model_type" value { string_value: "xgboost_json" } }
        parameters { key: "is_classifier" value { string_value: "true" } }

    Instead:
        # model/config.pbtxt
        backend: "fil"
        max_batch_size: 8
        input { name: "input__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "output__0" data_type: TYPE_FP32 dims: 1 }
        parameters { key: "model_type" value { string_value: "xgboost_json" } }
        parameters { key: "is_classifier" value { string_value: "true" } }
        parameters { key: "threshold" value { string_value: "0.5" } }

    Limits:
        Without a serving platform, the rule accepts both names.
    """
    given, name = each.parameters, each.parameters.classifier
    if name not in given.texts:
        found, other = (
            f"the parameter {name} is missing",
            "output_class" if name == "is_classifier" else "is_classifier",
        )
        if other in given.texts:
            why = (
                "releases before 25.09 do not read" if name == "output_class" else "the release takes no other text of"
            )
            found = f"{found}, and {why} {other} ({given.texts[other]!r})"
        yield each.owner.unloadable(
            each.parameter_field(other),
            found,
            f"Required parameter {name} not found in config",
            f'add parameters {{ key: "{name}" value {{ string_value: "true" }} }} for a classifier, "false" for any '
            "other model",
        )
    if given.is_classifier and "threshold" not in given.texts:
        yield each.owner.unloadable(
            each.parameter_field(name),
            f"{name} is 'true', and the parameter threshold is missing",
            "Required parameter threshold not found in config",
            'add parameters { key: "threshold" value { string_value: "0.5" } }',
        )


@fil_model_rule(
    "CT811",
    Severity.ERROR,
    "a parameter of FIL has a value that the backend rejects",
    source=rapids_triton(_STATE, 161, 181),
)
def rejected_value(each: FilModel) -> Iterator[Problem]:
    """FIL reads a boolean only if its text is exactly `true` or `false`, and a threshold only if it is a number.

    The server does not load a model with another value. On a GPU, it also rejects an unknown name in `layout`, or
    before 25.09 in `algo` and `storage_type`.

    Example:
        # model/config.pbtxt
        backend: "fil"
        max_batch_size: 8
        input { name: "input__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "output__0" data_type: TYPE_FP32 dims: 1 }
        parameters { key: "model_type" value { string_value: "xgboost_json" } }
        parameters { key: "is_classifier" value { string_value: "False" } }

    Instead:
        # model/config.pbtxt
        backend: "fil"
        max_batch_size: 8
        input { name: "input__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "output__0" data_type: TYPE_FP32 dims: 1 }
        parameters { key: "model_type" value { string_value: "xgboost_json" } }
        parameters { key: "is_classifier" value { string_value: "false" } }

    Limits:
        Releases before 23.06 use the default of an optional boolean if they cannot read its text. For them, the rule
        reports only `output_class`.
    """
    yield from _booleans(each)
    given, platform = each.parameters, each.owner.context.platform
    threshold = given.texts.get("threshold")
    if given.is_classifier and threshold is not None and not number_in(threshold, is_integer=False):
        yield each.owner.unloadable(
            'parameters["threshold"]',
            f"the parameter threshold is {threshold!r}",
            "Bad input for parameter threshold",
            "write a number, such as 0.5",
        )
    if not _is_on_gpu(each.owner.config):
        return
    words = {"layout": ("layout", _LAYOUTS)}
    if given.renamed is False:
        words = {"algo": ("algorithm", _ALGORITHMS), "storage_type": ("storage type", _STORAGE_TYPES)}
    library = "nvForest" if platform is not None and release_knows(platform, "26.06") else "FIL"
    for name, (kind, allowed) in words.items() if given.renamed is not None else ():
        if (value := word(given.texts.get(name, ""))) and value not in allowed:
            yield each.owner.unloadable(
                f'parameters["{name}"]',
                f"the parameter {name} is {value!r}",
                f"Unknown {library} {kind} name: {value}",
                f"write {in_words(allowed)}{did_you_mean(value, allowed)}",
            )


def _booleans(each: FilModel) -> Iterator[Problem]:
    given, platform = each.parameters, each.owner.context.platform
    is_strict = release_knows(platform, _STRICT_BOOLEANS_SINCE)
    read = [name for name, since in _BOOLEANS.items() if is_strict and (not since or release_knows(platform, since))]
    for name in (given.classifier, *read):
        text = given.texts.get(name)
        if text is None or given.boolean(name) is not None or (not is_strict and word(text)[:5] in ("true", "false")):
            continue
        yield each.owner.unloadable(
            f'parameters["{name}"]',
            f"the parameter {name} is {text!r}",
            f"Expected 'true' or 'false' for parameter '{name}', got: '{text}'"
            if is_strict
            else f"Bad input for parameter {name}",
            "write true or false, in lower case and without blanks",
        )


def _is_on_gpu(config: ModelConfig) -> bool:
    """Whether an instance certainly runs on the GPU, which every platform has; without a group, one does."""
    kinds = [enum_name(group, "kind") for group in config.instance_group]
    return not kinds or any(kind in ("KIND_GPU", "KIND_AUTO") for kind in kinds)


@fil_model_rule(
    "CT812",
    Severity.ERROR,
    "FIL does not know a model_type",
    source=backend("fil_backend", "src/serialization.h", 36, 54),
)
def unknown_model_type(each: FilModel) -> Iterator[Problem]:
    """The parameter `model_type` names the format of the file, not the library that trained the model.

    The values are `xgboost` (the default: XGBoost's old binary format), `xgboost_json`, `xgboost_ubj` (from 24.10 on),
    `lightgbm` and `treelite_checkpoint`. The server does not load a model with any other value. Models of scikit-learn
    and cuML are converted to Treelite checkpoints.

    Example:
        # model/config.pbtxt
        backend: "fil"
        max_batch_size: 8
        default_model_filename: "xgboost.json"
        input { name: "input__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "output__0" data_type: TYPE_FP32 dims: 1 }
        parameters { key: "model_type" value { string_value: "xgboost.json" } }
        parameters { key: "is_classifier" value { string_value: "false" } }

    Instead:
        # model/config.pbtxt
        backend: "fil"
        max_batch_size: 8
        input { name: "input__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "output__0" data_type: TYPE_FP32 dims: 1 }
        parameters { key: "model_type" value { string_value: "xgboost_json" } }
        parameters { key: "is_classifier" value { string_value: "false" } }
    """
    platform, value = each.owner.context.platform, each.parameters.model_type
    known = formats(None if platform is None else platform.release)
    if value in known:
        return
    fix = f"write {in_words(known)}{did_you_mean(value, known)}"
    if value in ("sklearn", "scikit-learn", "cuml", "rf", "random_forest", "pickle"):
        fix = 'convert the model to a Treelite checkpoint, and write "treelite_checkpoint"'
    elif value == "xgboost_ubj":
        fix = 'save the model as JSON, and write "xgboost_json"; or serve it with 24.10 or newer'
    yield each.owner.unloadable(
        each.parameter_field("model_type"),
        f"the parameter model_type is {value!r}",
        f"{value} not recognized as a valid serialization format.",
        fix,
    )


@fil_model_rule(
    "CT813",
    Severity.WARNING,
    "FIL reads another value than a parameter has",
    source=backend("fil_backend", "src/shared_state.h", 41, 97),
)
def other_value_read(each: FilModel) -> Iterator[Problem]:
    """FIL reads only the beginning of a number, uses its default for other text, and ignores some parameters.

    The backend does not reject such a parameter. From `0,5`, it reads the number 0, so that a threshold selects nearly
    every row. For `four`, it uses the default. From 25.09 on, it ignores `algo`, `threads_per_tree`, `storage_type` and
    `blocks_per_sm`, and before 25.09 `layout` and `chunk_size`.

    Example:
        # model/config.pbtxt
        backend: "fil"
        max_batch_size: 8
        input { name: "input__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "output__0" data_type: TYPE_FP32 dims: 1 }
        parameters { key: "model_type" value { string_value: "xgboost_json" } }
        parameters { key: "is_classifier" value { string_value: "true" } }
        parameters { key: "threshold" value { string_value: "0,7" } }

    Instead:
        # model/config.pbtxt
        backend: "fil"
        max_batch_size: 8
        input { name: "input__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "output__0" data_type: TYPE_FP32 dims: 1 }
        parameters { key: "model_type" value { string_value: "xgboost_json" } }
        parameters { key: "is_classifier" value { string_value: "true" } }
        parameters { key: "threshold" value { string_value: "0.7" } }

    Limits:
        The rule does not report an ignored parameter whose value is the default.
    """
    given = each.parameters
    ignored = {True: _REMOVED, False: _ADDED, None: {}}[given.renamed]
    for name, default in ignored.items():
        if word(given.texts.get(name, "")) not in ("", default):
            new = _NEW_NAMES.get(name)
            yield each.owner.problem(
                f'parameters["{name}"]',
                f"the release ignores the parameter {name} ({given.texts[name]!r}), which FIL reads "
                f"{'before 25.09' if given.renamed else 'from 25.09 on'}",
                f"remove it, or set {new} instead" if new and given.renamed else "remove it",
            )
    for name, number in _NUMBERS.items():
        text = given.texts.get(name, "").strip()
        if not text or name in ignored or (name == "threshold" and not given.is_classifier):
            continue
        read = number_in(text, is_integer=number.is_integer)
        if (read and _is_same(read, text)) or (not read and not number.default):
            continue  # a threshold without a number is CT811's
        yield each.owner.problem(
            f'parameters["{name}"]',
            f"the parameter {name} is {text!r}, from which FIL reads {read}"
            if read
            else f"the parameter {name} is {text!r}, which is no number, so FIL takes {number.default}",
            f"write {'an integer' if number.is_integer else 'a number with a point, such as 0.5'}",
        )


def _is_same(read: str, text: str) -> bool:
    """Whether the rest of the text does not change the number, as in `4.0` or `0.5f`."""
    try:
        return float(text.rstrip("fF")) == float(read)
    except ValueError:
        return False


@fil_model_rule(
    "CT814",
    Severity.WARNING,
    "a parameter of FIL is misspelled",
    source=backend("fil_backend", "src/shared_state.h", 41, 97),
)
def misspelled_parameter(each: FilModel) -> Iterator[Problem]:
    """FIL ignores a parameter that it does not know, so a misspelled parameter has no effect.

    Example:
        # model/config.pbtxt
        backend: "fil"
        max_batch_size: 8
        input { name: "input__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "output__0" data_type: TYPE_FP32 dims: 1 }
        parameters { key: "model_type" value { string_value: "xgboost_json" } }
        parameters { key: "is_classifier" value { string_value: "false" } }
        parameters { key: "predict_probe" value { string_value: "false" } }

    Instead:
        # model/config.pbtxt
        backend: "fil"
        max_batch_size: 8
        input { name: "input__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "output__0" data_type: TYPE_FP32 dims: 1 }
        parameters { key: "model_type" value { string_value: "xgboost_json" } }
        parameters { key: "is_classifier" value { string_value: "false" } }
        parameters { key: "predict_proba" value { string_value: "false" } }

    Limits:
        The rule reports only a name that is similar to a parameter of FIL.
    """
    for name in each.parameters.texts:
        if name in _KNOWN:
            continue
        meant = nearest(name, sorted(_KNOWN), at_most=1) or [each for each in _KNOWN if each == name.lower()]
        if meant:
            yield each.owner.problem(
                f'parameters["{name}"]',
                f"FIL has no parameter {name!r} and ignores it",
                f"write {meant[0]!r} if that is meant",
            )
