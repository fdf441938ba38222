"""CT825 to CT827, and CT829: whether dims and parameters fit the features and classes of a tree model."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from cdk_triton._wording import in_words
from cdk_triton.checks.registry import Problem
from cdk_triton.checks.sources import backend, treelite
from cdk_triton.tree_models.fil_models import FilForest, forest_rule
from cdk_triton.tree_models.reader.forest import ONE_AGAINST_ALL
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.schema import ModelInput, ModelOutput


@forest_rule(
    "CT825",
    Severity.ERROR,
    "a tree model has another number of features than its input",
    source=treelite("src/gtil/predict.cc", 40, 55),
)
def other_features(each: FilForest) -> Iterator[Problem]:
    """A row of `input__0` must have as many values as the model has features.

    FIL does not compare the two numbers. It reads row after row in steps of the model's features, so every row but the
    first begins in the wrong place, or the backend reads beyond the end of the input. The dims are one number, without
    the batch. With a batch, a variable number of rows in the dims, such as `[ -1, 4 ]`, is wrong too: FIL takes the
    batch size as the number of rows, and does not predict the others.

    Example:
        # model/config.pbtxt
        backend: "fil"
        max_batch_size: 8
        input { name: "input__0" data_type: TYPE_FP32 dims: 5 }
        output { name: "output__0" data_type: TYPE_FP32 dims: 1 }
        parameters { key: "model_type" value { string_value: "xgboost_json" } }
        parameters { key: "is_classifier" value { string_value: "false" } }
        # model/1/xgboost.json
        {"learner": {"learner_model_param": {"num_class": "0", "num_feature": "4"},
                     "gradient_booster": {"name": "gbtree", "model": {"trees": []}},
                     "objective": {"name": "reg:squarederror"}}}

    Instead:
        # model/config.pbtxt
        backend: "fil"
        max_batch_size: 8
        input { name: "input__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "output__0" data_type: TYPE_FP32 dims: 1 }
        parameters { key: "model_type" value { string_value: "xgboost_json" } }
        parameters { key: "is_classifier" value { string_value: "false" } }
    """
    has_batch = each.owner.config.max_batch_size > 0
    for index, tensor in enumerate(each.owner.config.input):
        if tensor.name != "input__0":
            continue
        if has_batch and each.forest.features and _has_variable_rows(tensor, each.forest.features):
            yield each.owner.problem(
                f"input[{index}].dims",
                f"'input__0' has a variable number of rows of {each.forest.features} values beside the batch, so FIL "
                "would predict only one of them for each item of the batch",
                f"write dims: [ {each.forest.features} ], and send the rows as a batch",
            )
        values = _values_in_row(tensor, has_batch=has_batch)
        if values is not None and each.forest.features is not None and values != each.forest.features:
            yield each.owner.problem(
                f"input[{index}].dims",
                f"a row of 'input__0' has {values} values, but {each.file.each.path} has {each.forest.features} "
                "features, so FIL would mix the values of different rows",
                f"write dims: [ {each.forest.features} ]" + ("" if has_batch else " and max_batch_size, such as 1024"),
            )


@forest_rule(
    "CT826",
    Severity.ERROR,
    "the output of a tree model has another size than FIL writes",
    source=backend("fil_backend", "src/tl_model.h", 101, 200),
)
def other_outputs(each: FilForest) -> Iterator[Problem]:
    """The dims of `output__0` follow from the number of classes and the parameter `predict_proba`.

    FIL allocates the output from the dims, and does not compare them with what it writes. If they are too small, it
    writes beyond the end of the output. If they are too large, the response contains values that are no predictions.

    | model | `predict_proba` | dims |
    |---|---|---|
    | classifier | `false` | 1: the number of the class |
    | classifier with several classes | `true` | the number of classes |
    | binary classifier, from 25.09 on | `true` | 1 or 2 |
    | binary classifier, before 25.09 | `true` | 2 |
    | any other, or `is_classifier: "false"` | `false` | 1, or the number of classes |

    For each class, the optional output `treeshap_output` has a Shapley value for each feature, and one more.

    Example:
        # model/config.pbtxt
        backend: "fil"
        max_batch_size: 8
        input { name: "input__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "output__0" data_type: TYPE_FP32 dims: 1 }
        parameters { key: "model_type" value { string_value: "xgboost_json" } }
        parameters { key: "is_classifier" value { string_value: "true" } }
        parameters { key: "threshold" value { string_value: "0.5" } }
        parameters { key: "predict_proba" value { string_value: "true" } }
        # model/1/xgboost.json
        {"learner": {"learner_model_param": {"num_class": "3", "num_feature": "4"},
                     "gradient_booster": {"name": "gbtree", "model": {"trees": []}},
                     "objective": {"name": "multi:softprob"}}}

    Instead:
        # model/config.pbtxt
        backend: "fil"
        max_batch_size: 8
        input { name: "input__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "output__0" data_type: TYPE_FP32 dims: 3 }
        parameters { key: "model_type" value { string_value: "xgboost_json" } }
        parameters { key: "is_classifier" value { string_value: "true" } }
        parameters { key: "threshold" value { string_value: "0.5" } }
        parameters { key: "predict_proba" value { string_value: "true" } }

    Limits:
        Without a serving platform, the rule accepts 1 and 2 for the probabilities of a binary classifier. It does not
        run for models with `use_experimental_optimizations`.
    """
    yield from _shapley_values(each)
    optimized = each.parameters.boolean("use_experimental_optimizations")
    sizes = () if each.forest.targets > 1 or optimized else each.parameters.written_sizes(each.forest.classes)
    for index, tensor in enumerate(each.owner.config.output):
        shape = _shape(tensor)
        values = _values_in_output(shape)
        if tensor.name != "output__0" or values is None or not sizes or values in sizes:
            continue
        proba = each.parameters.boolean("predict_proba") or False
        classes = f"{each.forest.classes} classes" if each.forest.classes > 1 else "one value"
        yield each.owner.problem(
            f"output[{index}].dims",
            f"'output__0' has {values} values for a row; with predict_proba {str(proba).lower()} FIL writes "
            f"{in_words(map(str, sizes))}, because {each.file.each.path} predicts {classes}",
            f"write dims: [ {sizes[0]} ]" + ("" if proba or each.forest.classes == 1 else _probabilities(each)),
        )


def _shapley_values(each: FilForest) -> Iterator[Problem]:
    """A problem of `treeshap_output`, whose size src/model.h has in a comment."""
    forest = each.forest
    for index, tensor in enumerate(each.owner.config.output):
        values = _values_in_output(_shape(tensor))
        if tensor.name != "treeshap_output" or values is None or forest.features is None or forest.targets > 1:
            continue
        size = forest.classes * (forest.features + 1)
        if values != size:
            yield each.owner.problem(
                f"output[{index}].dims",
                f"'treeshap_output' has {values} values for a row, but FIL writes {size}: one for each of "
                f"{forest.features} features and one more, for each class",
                f"write dims: [ {size} ]",
            )


def _probabilities(each: FilForest) -> str:
    return "" if each.parameters.is_classifier is False else ", or set predict_proba to true for the probabilities"


def _shape(tensor: ModelInput | ModelOutput) -> tuple[int, ...]:
    return tuple(tensor.reshape.shape if tensor.HasField("reshape") else tensor.dims)


def _values_in_row(tensor: ModelInput, *, has_batch: bool) -> int | None:
    """The values of one row; None if the dims leave it open, or are missing."""
    shape = _shape(tensor) if has_batch else _shape(tensor)[1:]
    if not tensor.dims or any(dim < 0 for dim in shape):
        return None
    return prod(shape)


def _has_variable_rows(tensor: ModelInput, features: int) -> bool:
    """Whether the dims of an input with a batch are a row of all features, and a variable number of such rows."""
    shape = _shape(tensor)
    return shape.count(-1) == 1 and len(shape) > 1 and prod(dim for dim in shape if dim > 0) == features


def _values_in_output(shape: tuple[int, ...]) -> int | None:
    """The values that the backend allocates for one row; None if that is not known.

    A first dimension of -1 is the batch; without it, the backend adds one (rapids-triton: shared_state.hpp).
    """
    rows = shape[1:] if shape[:1] == (-1,) else shape
    return prod(rows) if shape and all(dim > 0 for dim in rows) else None


@forest_rule(
    "CT827",
    Severity.WARNING,
    "FIL turns the predictions of a regression into 0 and 1",
    source=backend("fil_backend", "src/tl_model.h", 159, 187),
)
def regression_as_classifier(each: FilForest) -> Iterator[Problem]:
    """The model is a regression, but the configuration calls it a classifier.

    FIL then compares each prediction with the threshold, and responds with 0 or 1 instead of the prediction.

    Example:
        # model/config.pbtxt
        backend: "fil"
        max_batch_size: 8
        input { name: "input__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "output__0" data_type: TYPE_FP32 dims: 1 }
        parameters { key: "model_type" value { string_value: "xgboost_json" } }
        parameters { key: "is_classifier" value { string_value: "true" } }
        parameters { key: "threshold" value { string_value: "0.5" } }
        # model/1/xgboost.json
        {"learner": {"learner_model_param": {"num_class": "0", "num_feature": "4"},
                     "gradient_booster": {"name": "gbtree", "model": {"trees": []}},
                     "objective": {"name": "reg:squarederror"}}}

    Instead:
        # model/config.pbtxt
        backend: "fil"
        max_batch_size: 8
        input { name: "input__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "output__0" data_type: TYPE_FP32 dims: 1 }
        parameters { key: "model_type" value { string_value: "xgboost_json" } }
        parameters { key: "is_classifier" value { string_value: "false" } }

    Limits:
        Some people train a classifier of two classes as a regression of 0 and 1. Acknowledge the warning for such a
        model.
    """
    given = each.parameters
    proba = given.texts.get("predict_proba", "false")
    if each.forest.is_regression and each.forest.classes == 1 and given.is_classifier and proba == "false":
        kind = f" ({each.forest.objective})" if each.forest.objective else ""
        yield each.owner.problem(
            f'parameters["{given.classifier}"]',
            f"{given.classifier} is 'true', but {each.file.each.path} is a regression{kind}, so FIL would respond with "
            "0 or 1 instead of the predictions",
            f'write "false" for {given.classifier}',
        )


@forest_rule(
    "CT829",
    Severity.WARNING,
    "FIL computes other probabilities than LightGBM",
    source=backend("fil_backend", "src/tl_model.h", 48, 58),
)
def one_against_all(each: FilForest) -> Iterator[Problem]:
    """LightGBM's objective `multiclassova` has a probability of its own for each class.

    With `predict_proba`, FIL computes the probabilities of a model with several classes with a softmax, so their sum is
    1. The likeliest class is the same, but the values are not LightGBM's.

    Example:
        # model/config.pbtxt
        backend: "fil"
        max_batch_size: 8
        input { name: "input__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "output__0" data_type: TYPE_FP32 dims: 3 }
        parameters { key: "model_type" value { string_value: "lightgbm" } }
        parameters { key: "is_classifier" value { string_value: "true" } }
        parameters { key: "threshold" value { string_value: "0.5" } }
        parameters { key: "predict_proba" value { string_value: "true" } }
        # model/1/model.txt
        tree
        num_class=3
        max_feature_idx=3
        objective=multiclassova num_class:3 sigmoid:1
        end of trees

    Instead:
        # model/config.pbtxt
        backend: "fil"
        max_batch_size: 8
        input { name: "input__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "output__0" data_type: TYPE_FP32 dims: 3 }
        parameters { key: "model_type" value { string_value: "lightgbm" } }
        parameters { key: "is_classifier" value { string_value: "false" } }

    Limits:
        The rule does not know the objective of a checkpoint that Treelite 3 or older wrote.
    """
    if each.forest.objective == ONE_AGAINST_ALL and each.parameters.boolean("predict_proba"):
        yield each.owner.problem(
            'parameters["predict_proba"]',
            f"{each.file.each.path} has the objective multiclassova, but with predict_proba FIL responds with a "
            "softmax of all classes instead of LightGBM's probabilities",
            f"set {each.parameters.classifier} to false, and remove predict_proba; or train with the objective "
            "multiclass",
        )
