"""CT508 and CT509: what the multi-model loaders of older releases cannot do."""

from __future__ import annotations

from collections.abc import Iterator

from cdk_triton.checks.context import CheckContext
from cdk_triton.checks.derived.releases import is_older
from cdk_triton.checks.registry import Problem, rule
from cdk_triton.checks.sources import server
from cdk_triton.triton.findings import Severity


@rule(
    "CT508",
    Severity.ERROR,
    "the release's multi-model loader does not load ensembles",
    source=server("src/sagemaker_server.cc", 947, 1036),
    modes=("multi",),
    applies=lambda platform: is_older(platform, "22.12"),
)
def loader_without_ensembles(context: CheckContext) -> Iterator[Problem]:
    """The archive has an ensemble, and the release is older than 22.12.

    Before 22.12, Triton's multi-model loader rejects every archive with more than one directory, so the first
    invocation fails. Serve with 22.12 or newer, or use a single-model endpoint.

    Example:
        $ cdk-triton validate . --mode multi --platform 22.10/ml.g5.xlarge
        # model/config.pbtxt
        backend: "python"
        input { name: "IN" data_type: TYPE_FP32 dims: 1 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 1 }

        # ensemble/config.pbtxt
        platform: "ensemble"
        input { name: "IN" data_type: TYPE_FP32 dims: 1 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 1 }
        ensemble_scheduling {
          step {
            model_name: "model" model_version: -1
            input_map { key: "IN" value: "IN" } output_map { key: "OUT" value: "OUT" }
          }
        }

    Instead:
        $ cdk-triton validate . --mode multi --platform 25.09/ml.g5.xlarge
    """
    release = context.release
    if context.entry is not None and len(context.repository.models) > 1:  # otherwise CT501 to CT504 have said it
        yield Problem(
            ".",
            f"the archive has {len(context.repository.models)} directories, so the server of {release} would "
            "answer the first invocation with: More than one version or model directories found. Note that hidden "
            "folders are not allowed and Ensemble models are not supported in SageMaker MME mode.",
            "serve with 22.12 or newer, or use a single-model endpoint",
        )


@rule(
    "CT509",
    Severity.WARNING,
    "the release has one namespace for the models of all archives",
    source=server("docker/sagemaker/serve", 65, 69),
    modes=("multi",),
    applies=lambda platform: is_older(platform, "23.04") and not is_older(platform, "22.12"),
)
def no_name_space(context: CheckContext) -> Iterator[Problem]:
    """The archive has an ensemble, and the release is 22.12 or newer, but older than 23.04.

    Before 23.04, the server cannot load two archives at the same time if both have a model of the same name. From 23.04
    on, each archive has its own namespace. Serve with 23.04 or newer, or give the models names that no other archive
    uses.

    Example:
        $ cdk-triton validate . --mode multi --platform 23.03/ml.g5.xlarge
        # model/config.pbtxt
        backend: "python"
        input { name: "IN" data_type: TYPE_FP32 dims: 1 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 1 }

        # ensemble/config.pbtxt
        platform: "ensemble"
        input { name: "IN" data_type: TYPE_FP32 dims: 1 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 1 }
        ensemble_scheduling {
          step {
            model_name: "model" model_version: -1
            input_map { key: "IN" value: "IN" } output_map { key: "OUT" value: "OUT" }
          }
        }

    Instead:
        $ cdk-triton validate . --mode multi --platform 25.09/ml.g5.xlarge

    Limits:
        The rule does not read the other archives of the endpoint.
    """
    release = context.release
    names = [model.name for model in context.loaded_models if model is not context.entry]
    if context.entry is not None and names:
        yield Problem(
            ".",
            f"the server of {release} has one namespace for all archives, so another archive with one of these "
            f"models ({', '.join(map(repr, names))}) could not be loaded beside this one: failed to poll model "
            f"'{names[0]}': not unique across all model repositories",
            "serve with 23.04 or newer, or give the models names that no other archive uses",
        )
