"""CT820 to CT824: the files of tree models, and whether the backend's Treelite reads them."""

from __future__ import annotations

from collections.abc import Iterator

from cdk_triton._wording import quoted
from cdk_triton.checks.registry import Problem
from cdk_triton.checks.sources import backend, treelite
from cdk_triton.tree_models.fil_models import FilFile, FilForest, fil_file_rule, forest_rule
from cdk_triton.tree_models.parameters import FILES
from cdk_triton.tree_models.pickles import conversion
from cdk_triton.tree_models.reader.file import Damaged, Pickle
from cdk_triton.tree_models.reader.forest import LIBRARIES, Forest, Format
from cdk_triton.tree_models.releases import reads_checkpoint, requirements_of, treelite_of
from cdk_triton.triton.findings import Severity

# Field → the Treelite that reads it first, and the XGBoost that writes it first. Treelite rejects fields that it does
# not know: https://github.com/dmlc/treelite/pull/638, issues 492 and 417 there. XGBoost 3.4 writes the weights of DART
# into the model (dmlc/xgboost 811dadf); the wheel of Treelite 4.7.0 rejects them, and that of 4.8.1 reads them.
_NEW_FIELDS = {
    "weight_drop": ((4, 8, 0), "3.4"),
    "cats": ((4, 6, 0), "3.1"),
    "iteration_indptr": ((3, 9, 0), "2.0"),
    "boost_from_average": ((3, 0, 1), "1.7"),
}
_READS_BINARY_OF_2 = (3, 9, 0)  # https://github.com/dmlc/treelite/issues/492
_SAVES = {
    "xgboost": "save the model again with XGBoost's save_model, not with dump_model",
    "xgboost_json": "save the model again with XGBoost's save_model, not with dump_model",
    "xgboost_ubj": "save the model again with XGBoost's save_model, not with dump_model",
    "lightgbm": "save the model again with LightGBM's save_model, not with dump_model",
    "treelite_checkpoint": "write the checkpoint again with Treelite's serialize",
}
_CHECKPOINT_WORDS = {
    2: "Cannot deserialize model from a different version of Treelite.",
    3: "Cannot load model from a different major Treelite version or a version before 2.4.0.",
    4: "Cannot load model from a different major Treelite version or a version before 3.9.0.",
}
# What the newest Treelite, whose major version is 4, can do for a release.
_OTHER_WAYS = {
    4: '; or convert it with the newest Treelite 4, and write model_type "treelite_checkpoint": python -c "import '
    "treelite; treelite.frontend.load_xgboost_model('FILE').serialize('checkpoint.tl')\""
}
_XGBOOST: tuple[Format, ...] = ("xgboost", "xgboost_json", "xgboost_ubj")
# Treelite up to 4.7.0 knows these objectives of XGBoost (src/model_loader/detail/xgboost.cc).
_OBJECTIVES = (
    *("multi:softmax", "multi:softprob", "reg:logistic", "binary:logistic", "count:poisson", "reg:gamma"),
    *("reg:tweedie", "survival:cox", "survival:aft", "binary:hinge", "reg:squarederror", "reg:linear"),
    *("reg:squaredlogerror", "reg:pseudohubererror", "binary:logitraw", "rank:pairwise", "rank:ndcg", "rank:map"),
)


@fil_file_rule(
    "CT820",
    Severity.ERROR,
    "the file of a tree model cannot be read",
    source=backend("fil_backend", "src/tl_utils.h", 34, 92),
)
def damaged_file(each: FilFile) -> Iterator[Problem]:
    """The file is empty, incomplete, or not a tree model in one of the five formats of FIL.

    The server does not load the model.

    Example:
        # model/config.pbtxt
        backend: "fil"
        max_batch_size: 8
        input { name: "input__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "output__0" data_type: TYPE_FP32 dims: 1 }
        parameters { key: "model_type" value { string_value: "lightgbm" } }
        parameters { key: "is_classifier" value { string_value: "false" } }
        # model/1/model.txt
        {}

    Instead:
        # model/1/model.txt
        tree
        version=v4
        num_class=1
        max_feature_idx=3
        objective=regression

        Tree=0
        num_leaves=1
        num_cat=0
        leaf_value=0.5

        end of trees

    Limits:
        The rule does not open files of more than 64 MiB.
    """
    if isinstance(each.content, Damaged):
        wanted = each.model.parameters.model_type
        kind = LIBRARIES.get(wanted)
        reason = each.content.reason
        if kind is not None and each.content.format not in (None, wanted):
            reason = f"is not {kind}"  # what it lacks in the other format would mislead
        elif kind is not None:
            reason = f"{reason} (model_type {wanted!r}: {kind})"
        yield each.unloadable(f"the file {reason}", _SAVES.get(wanted, "save the model again with its library"))


@fil_file_rule(
    "CT821",
    Severity.ERROR,
    "model_type does not name the format of a tree model's file",
    source=backend("fil_backend", "src/tl_utils.h", 42, 83),
)
def other_format(each: FilFile) -> Iterator[Problem]:
    """The file is a tree model, but in another format than the parameter `model_type` names.

    The server does not load the model. Often `model_type` is missing, so that FIL expects XGBoost's old binary format.
    The file name does not help: XGBoost 2.1 and newer save `xgboost.model` as UBJSON.

    Example:
        # model/config.pbtxt
        backend: "fil"
        max_batch_size: 8
        default_model_filename: "forest.txt"
        input { name: "input__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "output__0" data_type: TYPE_FP32 dims: 1 }
        parameters { key: "is_classifier" value { string_value: "false" } }
        # model/1/forest.txt
        tree
        version=v4
        num_class=1
        max_feature_idx=3
        objective=regression

        Tree=0
        num_leaves=1
        num_cat=0
        leaf_value=0.5

        end of trees

    Instead:
        # model/config.pbtxt
        backend: "fil"
        max_batch_size: 8
        default_model_filename: "forest.txt"
        input { name: "input__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "output__0" data_type: TYPE_FP32 dims: 1 }
        parameters { key: "model_type" value { string_value: "lightgbm" } }
        parameters { key: "is_classifier" value { string_value: "false" } }
    """
    given = each.model.parameters
    if not isinstance(each.content, Forest) or given.model_type not in FILES or each.content.format == given.model_type:
        return
    kind, name = each.content.format, FILES[each.content.format]
    default = "" if "model_type" in given.texts else ", its default"
    rename = "" if each.each.field else f", and rename the file to {name}"
    yield each.unloadable(
        f"the file is {LIBRARIES[kind]}, but model_type is {given.model_type!r}{default}",
        f'write parameters {{ key: "model_type" value {{ string_value: "{kind}" }} }}{rename}',
    )


@fil_file_rule(
    "CT822",
    Severity.ERROR,
    "the file of a tree model is a pickle",
    source="https://github.com/triton-inference-server/fil_backend/blob/d71f8ef1648027c6e0514d45f1969751684528b5/docs/"
    "sklearn_and_cuml.md",
)
def pickled_model(each: FilFile) -> Iterator[Problem]:
    """FIL does not read pickles. A model of scikit-learn or cuML is converted to a Treelite checkpoint.

    The server does not load the model. The finding contains the command that converts the file. Run the command where
    the library of the model is installed, and only if you trust the file, because a pickle can run any code. XGBoost
    and LightGBM save their models in formats that FIL reads.

    Example:
        # model/config.pbtxt
        backend: "fil"
        max_batch_size: 8
        input { name: "input__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "output__0" data_type: TYPE_FP32 dims: 1 }
        parameters { key: "model_type" value { string_value: "lightgbm" } }
        parameters { key: "is_classifier" value { string_value: "false" } }
        # model/1/model.txt
        (a pickle of sklearn.ensemble)

    Instead:
        # model/1/model.txt
        tree
        version=v4
        num_class=1
        max_feature_idx=3
        objective=regression

        Tree=0
        num_leaves=1
        num_cat=0
        leaf_value=0.5

        end of trees

    Limits:
        The rule recognises a pickle by its first bytes, and never loads it. A pickle of protocol 0 or 1 is reported by
        CT820.
    """
    if isinstance(each.content, Pickle):
        library = each.content.library
        yield each.unloadable(
            f"the file is a pickle{f' of {library}' if library else ''}, which FIL does not read",
            conversion(each.each.path, library, each.each.context.platform),
        )


@forest_rule(
    "CT823",
    Severity.ERROR,
    "FIL cannot serve a kind of tree model",
    source=backend("fil_backend", "src/tl_utils.h", 98, 104),
)
def unsupported_model(each: FilForest) -> Iterator[Problem]:
    """FIL serves trees with one target, and no linear models.

    FIL rejects a model with several targets, such as a multi-label classifier or a regression of two values, and
    XGBoost's booster `gblinear`. Treelite rejects a model of XGBoost 3.1 or newer that contains the categories of a
    DataFrame's columns. Treelite does not read the linear models in the leaves of LightGBM's `linear_tree`: older
    releases predict without them.

    Example:
        # model/config.pbtxt
        backend: "fil"
        max_batch_size: 8
        input { name: "input__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "output__0" data_type: TYPE_FP32 dims: 1 }
        parameters { key: "model_type" value { string_value: "xgboost_json" } }
        parameters { key: "is_classifier" value { string_value: "false" } }
        # model/1/xgboost.json
        {"learner": {"learner_model_param": {"num_class": "0", "num_feature": "4", "num_target": "2"},
                     "gradient_booster": {"name": "gbtree", "model": {"trees": []}},
                     "objective": {"name": "reg:squarederror"}}}

    Instead:
        # model/1/xgboost.json
        {"learner": {"learner_model_param": {"num_class": "0", "num_feature": "4", "num_target": "1"},
                     "gradient_booster": {"name": "gbtree", "model": {"trees": []}},
                     "objective": {"name": "reg:squarederror"}}}
    """
    forest = each.forest
    if forest.targets > 1:
        yield each.file.refused(
            f"the model has {forest.targets} targets",
            "Multi-target model not supported",
            "train a model for each target, and serve them as steps of an ensemble; or serve it as a Python model",
        )
    if not forest.unsupported:
        return
    if forest.format == "lightgbm":
        yield each.file.each.problem(
            f"the model {forest.unsupported}, so its predictions would be wrong, or the server would not load "
            f"{each.owner.name!r}",
            "train with linear_tree=False, or serve it as a Python model",
        )
        return
    fix = "convert the categories to numbers before the training, as FIL gets numbers in its requests"
    if "booster" in forest.unsupported:
        fix = "train with the booster gbtree, or serve it as a Python model"
    yield each.file.unloadable(f"the model {forest.unsupported}", fix)


@forest_rule(
    "CT824",
    Severity.ERROR,
    "the release's Treelite does not read the file of a tree model",
    source=treelite("src/serializer.cc", 184, 203),
    applies=lambda platform: treelite_of(platform) is not None,
)
def unread_by_release(each: FilForest) -> Iterator[Problem]:
    """FIL reads every file with the library Treelite, and the version of Treelite depends on Triton's release.

    The server does not load a file that is too new, or a checkpoint that is too old:

    * XGBoost's JSON and UBJSON formats get new fields, which an older Treelite rejects. Models of XGBoost 3.1 and newer
      need Triton 26.01, models of XGBoost 2.0 need 23.11, and models of 1.7 need 23.01. No release up to 26.06 reads a
      DART model of XGBoost 3.4. With `xgboost_allow_unknown_field: "true"` (from 23.11 on), FIL ignores unknown fields,
      which does not help for 3.1.
    * Checkpoints of Treelite 4 need Triton 24.03 or newer, which also read those of 3.9.
    * The objectives `reg:absoluteerror` and `reg:quantileerror` of XGBoost are unknown up to 26.06.

    Example:
        $ cdk-triton validate . --platform 25.09/ml.g5.xlarge
        # model/config.pbtxt
        backend: "fil"
        max_batch_size: 8
        input { name: "input__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "output__0" data_type: TYPE_FP32 dims: 1 }
        parameters { key: "model_type" value { string_value: "xgboost_json" } }
        parameters { key: "is_classifier" value { string_value: "false" } }
        # model/1/xgboost.json
        {"learner": {"learner_model_param": {"base_score": "[5E-1]", "num_class": "0", "num_feature": "4"},
                     "gradient_booster": {"name": "gbtree", "model": {"cats": {"enc": []}, "trees": []}},
                     "objective": {"name": "reg:squarederror"}},
         "version": [3, 2, 0]}

    Instead:
        # model/1/xgboost.json
        {"learner": {"learner_model_param": {"base_score": "5E-1", "num_class": "0", "num_feature": "4"},
                     "gradient_booster": {"name": "gbtree", "model": {"trees": []}},
                     "objective": {"name": "reg:squarederror"}},
         "version": [3, 0, 5]}

    Limits:
        The rule knows the releases up to 26.06. For your own image, the rule does not run.
    """
    forest, reader = each.forest, treelite_of(each.owner.context.platform)
    if reader is None:
        return
    release = f"the release's Treelite, {'.'.join(map(str, reader))},"
    if forest.format == "treelite_checkpoint" and not reads_checkpoint(reader, forest.version):
        yield each.file.refused(
            f"the checkpoint is of {forest.writer}, and the release has Treelite {'.'.join(map(str, reader))}",
            _CHECKPOINT_WORDS[reader[0]],
            f"write the checkpoint again with {requirements_of(reader)}",
        )
    if forest.format not in _XGBOOST:
        return
    if forest.objective not in _OBJECTIVES and not forest.unsupported:
        yield each.file.refused(
            f"{release} does not know the objective {quoted(forest.objective)}",
            "Unrecognized XGBoost objective",
            "train with another objective, such as reg:squarederror, or serve it as a Python model",
        )
    if forest.format == "xgboost" and forest.version >= (2,) and reader < _READS_BINARY_OF_2:
        yield each.file.refused(
            f"the file is of {forest.writer}; {release} does not read the old binary format of XGBoost 2.0 or newer",
            "std::bad_alloc",
            "save the model with an XGBoost older than 2.0",
        )
    unknown = [field for field in _NEW_FIELDS if field in forest.fields and reader < _NEW_FIELDS[field][0]]
    if unknown and not (each.parameters.boolean("xgboost_allow_unknown_field") and "cats" not in unknown):
        _, first = _NEW_FIELDS[unknown[0]]
        yield each.file.refused(
            f"the file is of {forest.writer}; {release} does not read models of XGBoost {first} or newer",
            f'Error: key "{unknown[0]}" is not recognized!',
            f"save the model with an XGBoost older than {first}" + _OTHER_WAYS.get(reader[0], ""),
        )
