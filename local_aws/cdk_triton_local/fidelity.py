"""The parts of AWS that the local AWS models, and its differences, for the user guide: `make generate` writes it."""

from __future__ import annotations

from cdk_triton_local import faults
from cdk_triton_local.cloudformation.api import OPERATIONS
from cdk_triton_local.cloudformation.resource_types import is_custom, registered
from cdk_triton_local.jobs import codebuild, processing

__all__ = ["DIFFERENCES", "markdown"]

DIFFERENCES = {
    "CloudFormation": (
        "CloudFormation works on all independent resources in parallel, in varying order. Here resources are created "
        "one after another, each after the resources on which it depends, and otherwise in the order of the template; "
        "deletions run in the reverse order. Only custom resources start together, when no other resource can start.",
        "CloudFormation cancels running work when a resource fails. Here no work is cancelled.",
        "There is no CONFIGURATION_COMPLETE event between CREATE_IN_PROGRESS and CREATE_COMPLETE, and no event for a "
        "resource if only its Metadata, DeletionPolicy or UpdateReplacePolicy changes.",
        "In the cleanup of an update, CloudFormation tries each deletion three times. Here each deletion is tried "
        "once.",
        "Macros, stack policies, rollback triggers, drift, `--no-rollback` and `--express` are rejected.",
        "`cdk import` and `cdk deploy --import-existing-resources` import buckets, and SageMaker models, endpoint "
        "configurations and endpoints. `cdk import` of another type is rejected, and a deployment creates it. As in "
        "CloudFormation, properties are not compared with the resource. Nested stacks import nothing.",
        "All Lambda functions together have 10 concurrent executions, as in a new account.",
        "IAM, bucket, queue and key policies are recorded, but never enforced. Nothing is encrypted. The check of a "
        "role by CreateFunction, CreateModel or CreateProcessingJob in a VPC is a [fault](#faults).",
        "Nothing is cold, throttled or late, unless you start the local AWS with [faults](#faults). A function that is "
        "inactive then is still `Active` in GetFunction.",
        "Routes and VPC endpoints have an effect on Lambda functions only, and only with the [fault](#faults) "
        "`isolated-subnets`. Security groups, the policies of VPC endpoints and imported VPCs have none. "
        "No request to another region fails because of a VPC endpoint.",
        "Lifecycle rules are recorded, but never act.",
        "The state is in memory and is lost when the process ends. S3 objects above 5 MB are in unnamed temporary "
        "files.",
    ),
    "Endpoints": (
        "Instance type and count of an endpoint configuration are recorded, and one server answers for each variant. "
        "The number of free instances has no limit, unless `cdk-triton local capacity` limits a type. If instances are "
        "missing, deployments and copies of components fail at once, without waiting for "
        "`VariantInstanceProvisionTimeoutInSeconds`. When the instance count of a variant grows, the instances are "
        "added to the pool that serves, whatever `cdk-triton local capacity` allows.",
        "An endpoint is `Updating` for three seconds while its number of instances changes. Weights that "
        "UpdateEndpointWeightsAndCapacities sets take effect at once; in SageMaker, the endpoint is `Updating` for a "
        "change of weights, too.",
        "A variant's volume size, routing strategy, capacity reservation, and timeouts for the container's start-up "
        "health check and the model download are recorded only.",
        "SageMaker places copies of inference components by rules that are not public. Here the largest copies come "
        "first, each onto the first instance where it fits; instances come and go at once with the copies, and hosts "
        "reserve no memory for themselves. `DeploymentConfig` is recorded only: an update replaces all copies at "
        "once.",
        "A server that does not answer six pings in a row, one every 5 s, is killed and replaced; AWS does not "
        "document how many missed pings SageMaker allows. A ping that is answered with an error has no effect. A "
        "Python model whose process died answers with errors until the server is replaced, because Triton does not "
        "start the process again.",
        "A server loads or unloads one model at a time, and never unloads a model that a request waits for. AWS does "
        "not document how SageMaker orders loads.",
        "Endpoints publish the metrics of invocations and of target models to the local CloudWatch every 10 s, as "
        "sums, counts and extremes. Only `ModelLatency` has percentiles. The utilization of CPU, GPU, memory and disk "
        "is missing. Metrics are forgotten after a day.",
        "Asynchronous endpoints also publish `ExpiredRequests`, `InvocationFailures` and, every 10 s, the metrics of "
        "their queue. An instance gets 4 requests at a time unless the configuration sets a number. With zero "
        "instances, the server keeps running, but requests wait.",
        "The answer of an asynchronous request is stored without the container's content type, and a failure as the "
        "text of a ModelError; AWS does not document the form of either object. Notifications do not include answers.",
        "Data capture writes a file for each captured invocation before the caller gets the answer, and no file for "
        "failed invocations. SageMaker collects invocations for minutes.",
        "A shadow's answers are neither compared nor captured. Streamed answers are not captured, and a shadow answers "
        "the copy of a streamed request as a whole. AWS does not document either.",
        "InvokeEndpointWithResponseStream sends each chunk of the container at once, as one `PayloadPart`, for up to "
        "480 s. SageMaker may join or split chunks. A caller that hangs up ends the request with the next chunk, and "
        "Triton then cancels it; AWS does not document what SageMaker does.",
        "A multi-model endpoint rejects InvokeEndpointWithResponseStream, whose request cannot name a target model. "
        "SageMaker's message is not known.",
    ),
    "Models": (
        "The server is Triton 24.10, whatever the image. So a `/` in `TargetModel` works here, which images from "
        "26.03 on reject, and `--http-max-input-size` is ignored: the server is older than the option and has no such "
        "limit.",
        "Python models run with the Python of this machine, 3.11 or 3.12, and its numpy 1.x; an image has the Python "
        "of its release (3.8, 3.10 or 3.12) and its own numpy. Packages beside a model are replaced by their builds "
        "for this machine, if [`cdk-triton vendor`](recipes.md#a-directory-of-the-model) has installed some. The "
        "models can import the standard library, numpy, their own files and, if they have one, their own environment. "
        "As in an image, they cannot import packages of your virtual environment. The few other packages of an image, "
        "such as SciPy from 26.01 on, are missing here. The stand-ins for backends can import the packages of the "
        "interpreter that runs the local AWS.",
        "Triton 24.10 does not work with numpy 2. If an unpacked environment has numpy 2, outputs of numbers are empty "
        "(0 bytes), and a request with strings ends the model's process.",
        "The configuration of an ONNX model or a TensorRT plan is not completed from its file, so `config.pbtxt` must "
        "contain inputs and outputs. Fields such as `batch_input`, whose tensors the backend makes, are not supported.",
        "The stand-in for PyTorch does not keep the implicit state of a sequence (`sequence_batching.state`).",
        "Triton 24.10 does not read `SAGEMAKER_TRITON_INFERENCE_TYPE`, as the images before 25.03. For `generate` and "
        "`generate_stream` in a newer image, or in one whose tag has no release, `/invocations` leads to the same "
        "handler of the server's HTTP front end, which listens on a free port of 127.0.0.1 then, whatever "
        "`SAGEMAKER_TRITON_ADDITIONAL_ARGS` has.",
        "As in the images before 25.01, a `CONTROL_SEQUENCE_CORRID` of the type `TYPE_STRING` fails for every request, "
        "and Triton 24.10 does not compare the type of a correlation id with the type that the model declares: a long "
        "text for a number ends the server.",
        "`SAGEMAKER_TRITON_MODEL_LOAD_GPU_LIMIT` has no effect, because there is no GPU.",
        "Patterns in `SAGEMAKER_TRITON_ADDITIONAL_ARGS` stay as they are, but the shell in an image expands them to "
        "file names.",
        "An archive can contain 100,000 files and directories, and can unpack to 1 GiB or to 200 times its own size, "
        "whichever is larger, but not to more than 512 GiB, the largest volume of an instance.",
        "Models get no AWS credentials; in SageMaker, they have those of the execution role.",
    ),
    "Builds and state machines": (
        "The first command of a build or a processing job starts at once. There is no queue, no image to pull and no "
        "limit on how many run.",
        "A build or a processing job runs in bash on this machine, without a container, so it can read this machine's "
        "files. Its image is only a name. Its `python3` is the Python that runs the local AWS, and its PATH is that "
        "of this machine.",
        "The models run with the Python that runs the local AWS, so `WheelEnvironment` packs for this Python instead "
        "of the image's. The build prints this difference, and its manifest names a stand-in for Python. pip reads "
        "your configuration files, and the `PIP_` variables with which the local AWS was started.",
        "The stand-ins for the tools of an image have the options of the Triton release in the image's tag, or of "
        "24.10 if the tag has none.",
        "The stand-in for FIL has the parameters and the values of `model_type` of the release in the image's tag, or "
        "those of all releases if the tag has none. It reads files with Treelite 4.8, which accepts models that an "
        "older release rejects ([CT824](rules/frameworks.md#ct824)).",
        "In a build, shell variables that are not exported, functions and background processes end with their phase. "
        "On AWS they last until the build ends.",
        "If the entrypoint, arguments or environment of a processing job name `/opt/ml`, this path is replaced by the "
        "job's own directory. A program that has this path in its code finds the `/opt/ml` of this machine.",
        "A processing job that fails or is stopped uploads its outputs of mode `Continuous`, but not those of mode "
        "`EndOfJob`.",
        "Every service quota of an endpoint with GPUs and of its builds is 100, but is not enforced. Requests for "
        "quotas of other services fail.",
        "BatchGetImage finds the images of this library's table in the accounts of SageMaker's Triton images. No "
        "other operation finds them.",
        "State machines with JSONPath definitions run if their tasks call Lambda functions, as those of a publisher "
        "do. An expression in JSONata, a task that waits for its job (`.sync`) and a direct call of CodeBuild or "
        "SageMaker fail. A direct call of another service (`aws-sdk:`) uses boto3's parameter names, and its errors "
        "have different names than on AWS.",
        "A distributed map never compares its failures with a threshold, so the map does not fail if a child fails, "
        "and its ResultWriter writes a manifest without results. Thresholds in percent, batches of items, child "
        "executions of the type EXPRESS, and inputs other than a JSON file are rejected.",
        "The quotas of Step Functions, such as 256 KiB for the input or output of a state and 25,000 events for an "
        "execution, are not enforced. `RedriveExecution` is rejected, and a state machine writes no log.",
    ),
}
"""The differences from AWS, by subject."""


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
        "Every other type is rejected, and so is a property that is neither modelled nor recorded. The message lists",
        "the supported properties.",
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
        "Every other operation of CodeBuild fails with an error that names the operation, and so does a request with a",
        "member that is not modelled.",
        "",
        *(f"* {service}: {', '.join(f'`{name}`' for name in names)}" for service, names in jobs.items()),
        "",
        "## Faults",
        "",
        "`cdk-triton local up --faults NAME[,NAME]` gives the local AWS faults that AWS documents. Calls of the",
        "services themselves have none, because AWS repeats them. While there is any fault, nothing waits between two",
        "attempts, unless a function, a job or a server's start works at that moment: the clock moves on instead.",
        "",
        *faults.markdown(),
        "",
        "## Differences from AWS",
        "",
    ]
    for subject, differences in DIFFERENCES.items():
        lines += [f"### {subject}", "", *(f"* {difference}" for difference in differences), ""]
    return "\n".join(lines)
