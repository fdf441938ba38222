"""The parts of AWS that the local AWS models, and its differences, for the user guide: `make generate` writes it."""

from __future__ import annotations

from cdk_triton_local.cloudformation.api import OPERATIONS
from cdk_triton_local.cloudformation.resource_types import is_custom, registered
from cdk_triton_local.jobs import codebuild, processing

__all__ = ["DIFFERENCES", "markdown"]

DIFFERENCES = (
    "CloudFormation works on all independent resources in parallel, in varying order. The local AWS creates one "
    "resource after another. It creates each resource after the resources on which it depends, and otherwise in the "
    "order of the template. Custom resources are the exception: when no other resource can begin, all custom "
    "resources that can begin start together. Deletions run in the reverse order.",
    "All Lambda functions together have 10 concurrent executions, as in a new account.",
    "An endpoint is `Updating` for three seconds while its number of instances changes.",
    "The local AWS never cancels work, because it creates resources one after another. CloudFormation cancels running "
    "work when a resource fails.",
    "There is no CONFIGURATION_COMPLETE event between CREATE_IN_PROGRESS and CREATE_COMPLETE.",
    "If a change affects only a resource's Metadata, DeletionPolicy or UpdateReplacePolicy, the local AWS records the "
    "change without an event of this resource.",
    "The cleanup of an update tries each deletion once, but CloudFormation tries three times.",
    "Macros, imports, stack policies, rollback triggers, drift, `--no-rollback` and `--express` are rejected.",
    "SageMaker places copies of inference components by rules that are not public. The local AWS places the largest "
    "copies first, each onto the first instance where it fits. It adds and removes instances at once with the copies, "
    "and hosts reserve no memory for themselves. `DeploymentConfig` is recorded only: an update replaces all copies "
    "at once.",
    "Instance type and count of an endpoint configuration are recorded, and one server answers for each variant. The "
    "number of free instances has no limit, unless `cdk-triton local capacity` limits a type. If instances are "
    "missing, a deployment fails at once, and so do copies of components. The deployment does not wait for "
    "`VariantInstanceProvisionTimeoutInSeconds`. Scaling adds instances to the pool that serves, whatever the "
    "capacity.",
    "The server is Triton 24.10, whatever the image, so a `/` in `TargetModel` works here. Images from 26.03 on "
    "reject a `/`.",
    "Python models run with the Python of this machine, 3.11 or 3.12, and its numpy 1.x. An image has the Python of "
    "its release (3.8, 3.10 or 3.12) and its own numpy. As in an image, models cannot import the packages of "
    "your virtual environment. They can import the standard library, numpy, their own files and an environment that "
    "is unpacked.",
    "Triton 24.10 does not work with numpy 2. If an unpacked environment has numpy 2, outputs of numbers are empty (0 "
    "bytes), and a request with strings ends the model's process.",
    "An image has a few more packages than numpy, for example SciPy from 26.01 on. Python models do not find these "
    "packages here. The stand-ins for backends can import the packages of the interpreter that runs the local AWS.",
    "`SAGEMAKER_TRITON_MODEL_LOAD_GPU_LIMIT` has no effect, because there is no GPU.",
    "The local AWS passes patterns in `SAGEMAKER_TRITON_ADDITIONAL_ARGS` on as they are, but the shell in an image "
    "expands patterns to file names.",
    "The server does not complete the configuration of an ONNX model from its file, so `config.pbtxt` must contain "
    "inputs and outputs.",
    "A variant's volume size, routing strategy and capacity reservation are recorded only. So are its timeouts for the "
    "container's start-up health check and the model download.",
    "A server that does not answer six pings in a row, one every 5 s, is killed and replaced. AWS does not document "
    "how many missing answers SageMaker allows. A ping that is answered with an error has no effect. A Python model "
    "whose process died answers with errors until the server is replaced, because Triton does not start the process "
    "again.",
    "A server loads or unloads one model at a time, and never unloads a model that a request waits for. AWS does not "
    "document how SageMaker orders loads.",
    "An archive may contain 100,000 files and directories. It may unpack to 1 GiB or to 200 times its own size, "
    "whichever is larger. No archive may unpack to more than 512 GiB, which is the largest volume of an instance.",
    "Endpoints publish the metrics of invocations and of target models to the local CloudWatch every 5 s, as sums, "
    "counts and extremes. Percentiles are missing, and so is the utilization of CPU, GPU, memory and disk. "
    "`InvocationsPerInstance` counts one instance, whatever the number of instances.",
    "Scaling policies never act. Use UpdateEndpointWeightsAndCapacities to scale an asynchronous endpoint to zero "
    "instances and back. At zero instances, its server keeps running, but requests wait.",
    "An instance of an asynchronous endpoint gets 4 requests at a time unless its configuration sets a number.",
    "The answer of an asynchronous request is stored without the container's content type, and a failure is stored as "
    "the text of a ModelError. AWS does not document the form of either object. Notifications do not include answers.",
    "An asynchronous endpoint publishes the metrics of its queue every 5 s, `ExpiredRequests`, "
    "`InvocationFailures`, and the metrics of a real-time endpoint, too.",
    "`--http-max-input-size` is ignored, because the server here is older than the option and has no such limit.",
    "A shadow's answers are not compared and not captured; the log shows the status and duration of each answer.",
    "Weights that UpdateEndpointWeightsAndCapacities sets take effect at once. In SageMaker, the endpoint is "
    "`Updating` for a change of weights, too.",
    "Data capture writes a file for each captured invocation, before the invocation is answered. SageMaker collects "
    "invocations for minutes. Failed invocations are not captured.",
    "Models get no AWS credentials, but in SageMaker models have the credentials of the execution role.",
    "The first command of a build or a processing job starts at once. There is no queue, no image to pull and no "
    "limit on how many run.",
    "A build or a processing job runs in bash on this machine, without a container, so it can read this machine's "
    "files. Its image is only a name. Its `python3` is the Python that runs the local AWS, and its PATH is that of "
    "this machine.",
    "`WheelEnvironment` packs for the Python that runs the local AWS instead of the image's, because the models run "
    "with that Python. The build prints this difference, and its manifest names a stand-in for Python. pip reads your "
    "configuration files, and the `PIP_` variables with which the local AWS was started.",
    "The stand-ins for the tools of an image have the options of the Triton release in the image's tag. Without a "
    "release in the tag, the stand-ins have the options of 24.10.",
    "In a build, shell variables that are not exported, functions and background processes end with their phase. On "
    "AWS they last until the build ends.",
    "If the entrypoint, arguments or environment of a processing job name `/opt/ml`, the local AWS replaces it by the "
    "job's own directory. A program that has this path in its code finds the `/opt/ml` of this machine.",
    "A processing job that fails or is stopped uploads its outputs of mode `Continuous`, but does not upload outputs "
    "of mode `EndOfJob`.",
    "Every service quota of an endpoint with GPUs and of its builds is 100, but nothing enforces the quota. Requests "
    "for quotas of other services fail.",
    "BatchGetImage finds the images of this library's table in the accounts of SageMaker's Triton images. No other "
    "operation finds these images.",
    "Auto scaling, alarms, schedules and lifecycle rules are recorded, but never act.",
    "A distributed map of Step Functions never compares its failures with a threshold, so a failed child does not "
    "fail the map. The ResultWriter of the map writes a manifest without results. The local AWS rejects thresholds in "
    "percent, batches of items, child executions of the type EXPRESS, and every input that is not a JSON file.",
    "The local AWS runs JSONPath definitions whose tasks call Lambda functions, such as a publisher's. An expression "
    "in JSONata, a task that waits for its job (`.sync`) and a direct call of CodeBuild or SageMaker fail here. A "
    "direct call of another service (`aws-sdk:`) takes the names of boto3's parameters, and its errors have other "
    "names than on AWS.",
    "The quotas of Step Functions are not enforced. Examples are 256 KiB for the input or output of a state, and "
    "25,000 events for an execution.",
    "The local AWS rejects `RedriveExecution`, and a state machine does not write a log.",
    "IAM, bucket, queue and key policies are recorded, but never enforced. Nothing is encrypted.",
    "The state is in memory and is lost when the process ends. S3 objects above 5 MB are in unnamed temporary files.",
)
"""The differences from AWS."""


def markdown() -> str:
    """The sections of the user guide: resource types, operations, differences."""
    types = [
        f"| {'`Custom::*`, ' if is_custom(name) else ''}`{name}` | {each.note} | "
        f"{', '.join(f'`{recorded}`' for recorded in sorted(each.recorded))} |"
        for name, each in registered().items()
    ]
    jobs = {"CodeBuild": codebuild.OPERATIONS, "SageMaker Processing": processing.OPERATIONS}
    lines = [
        "## Resource types",
        "",
        "Every other type is an error. So is a property that the local AWS neither models nor records. The message",
        "lists the supported properties.",
        "",
        "| type | here | recorded, without effect |",
        "|---|---|---|",
        *types,
        "",
        "## CloudFormation operations",
        "",
        "Every other operation fails with an error that names the operation.",
        "",
        *(f"* `{name}`" for name in sorted(OPERATIONS)),
        "",
        "## CodeBuild and SageMaker Processing operations",
        "",
        "Every other operation of CodeBuild fails with an error that names the operation. A request with a member that",
        "is not modelled fails with an error that names the member.",
        "",
        *(f"* {service}: {', '.join(f'`{name}`' for name in names)}" for service, names in jobs.items()),
        "",
        "## Differences from AWS",
        "",
        *(f"* {difference}" for difference in DIFFERENCES),
    ]
    return "\n".join(lines) + "\n"
