"""The codes of errors and warnings of the constructs, for `cdk-triton explain`.

The findings of rules are about a repository. These codes are about the rest of an app: other stacks, the policy of an
update, the network.
"""

from __future__ import annotations

from typing import Final

from cdk_triton.checks.documentation import ConstructCode
from cdk_triton.hosting.naming.component_codes import COMPONENT_CODES
from cdk_triton.hosting.naming.variant_codes import VARIANT_CODES
from cdk_triton.triton.findings import Severity

__all__ = ["CONSTRUCT_CODES"]

_OTHER_CODES: Final = (
    ConstructCode(
        "cdk-triton:AccessLogsWithKey",
        "the bucket for access logs has a KMS key",
        "S3 does not support access logs in a bucket that is encrypted with a KMS key, and reports no error if it "
        "cannot write a log. Use a bucket with S3's own keys.",
        "Security",
    ),
    ConstructCode(
        "cdk-triton:AlarmInAnotherStack",
        "a rollback alarm of an endpoint is in another stack",
        "CloudFormation does not remove or replace an alarm that another stack imports. Create it in the endpoint's "
        "stack, or import it with Alarm.from_alarm_arn. Otherwise, remove it one deployment after the endpoint has "
        "stopped using it.",
        "Roll back and promote",
    ),
    ConstructCode(
        "cdk-triton:ArtifactStoreInStack",
        "the stack of a model got an artifact store of its own",
        "If the first deployment of the stack fails, the bucket stays, and no stack owns it. Create a "
        "TritonArtifactStore in a stack of its own, and pass it as store=.",
        "The artifact store",
    ),
    ConstructCode(
        "cdk-triton:AsyncBucketNotExpiring",
        "an imported bucket keeps the requests and answers of an asynchronous endpoint",
        "The app cannot add lifecycle rules to an imported bucket, so requests and answers stay until somebody "
        "deletes them. Add rules for the prefixes that the warning lists.",
        "Asynchronous endpoints",
    ),
    ConstructCode(
        "cdk-triton:AsyncBucketNotGranted",
        "the bucket of an asynchronous endpoint belongs to another account",
        "This app cannot change the policy of the bucket. Every request fails unless the policy lets the execution "
        "roles of the models read requests and write answers. Add these permissions.",
        "Asynchronous endpoints",
    ),
    ConstructCode(
        "cdk-triton:AsyncTopicNotGranted",
        "an imported topic gets the notifications of an asynchronous endpoint",
        "The key and the policy of an imported topic are not known, so notifications may get lost. If the topic has a "
        "KMS key, allow the execution roles to use this key. If the topic belongs to another account, allow the roles "
        "to publish to it.",
        "Asynchronous endpoints",
    ),
    ConstructCode(
        "cdk-triton:BuildImagePullNotGranted",
        "the role of the builds may have no permission to pull the image",
        "The image's name does not show a repository of Amazon ECR, so the library cannot grant the pull. Call "
        "grant_pull on the image's repository for each role in store.build_roles.values().",
        "An image of your own",
    ),
    ConstructCode(
        "cdk-triton:BuildTimeout",
        "a build may take longer than its builder allows",
        "The builder ends the job at the time limit. The store keeps the finished files, and the next deployment "
        "builds the others. Give the builder a longer timeout.",
        "Builds",
    ),
    ConstructCode(
        "cdk-triton:CaptureNotGranted",
        "the bucket of data capture belongs to another account",
        "This app cannot change the policy of the bucket. SageMaker captures nothing unless the policy allows the "
        "execution roles of the models to call s3:PutObject. Add this permission.",
        "Security",
    ),
    ConstructCode(
        "cdk-triton:CaptureOfMultiModel",
        "data capture is on for a multi-model variant",
        "SageMaker's table of supported features does not list data capture for multi-model endpoints. Check whether "
        "SageMaker captures data in your account.",
        "Endpoints and variants",
    ),
    ConstructCode(
        "cdk-triton:CaptureOfScaledVariant",
        "an endpoint with data capture has a scaled variant",
        "An update of a scaled endpoint keeps some properties of the running endpoint, and AWS does not document "
        "whether the former data capture is one of them. After you change data_capture, compare it with "
        "DataCaptureConfig in the output of describe-endpoint.",
        "Endpoints and variants",
    ),
    ConstructCode(
        "cdk-triton:DaliMemory",
        "DALI keeps its GPU memory when SageMaker unloads a model",
        "Other models do not get the memory of an unloaded DALI model. Set DALI's backend option release_after_unload "
        "in the environment.",
        "Endpoints and variants",
    ),
    ConstructCode(
        "cdk-triton:DownloadWithoutNetwork",
        "a Python model downloads a file while it loads, in a container without a network",
        "A container of a model with network_isolation=True reaches no network, so the call fails, and the model does "
        "not load. Save the files into the model's version directory, and load them by their path. Acknowledge the "
        "warning if the file is already where the library looks first.",
        "Network and data",
    ),
    ConstructCode(
        "cdk-triton:EncryptionKeyOfLocalDisks",
        "encryption_key is given for an instance type with local NVMe disks",
        "The instance encrypts such disks with a key of its own, and SageMaker may reject the endpoint configuration. "
        "Remove encryption_key, or try the configuration in your account.",
        "Endpoints and variants",
    ),
    ConstructCode(
        "cdk-triton:EndpointNameCase",
        "the name of an imported endpoint is not known before the deployment",
        "The ARN of an endpoint contains the name in lower case, and an unresolved token cannot be converted. If the "
        "name has capital letters, a grant by name allows nothing. Import the endpoint with its ARN.",
        "Endpoints and variants",
    ),
    ConstructCode(
        "cdk-triton:GenerateProtocol",
        "the container of a model reads Triton's generate protocol",
        "With the inference_type generate or generate_stream, requests are flat JSON, without shapes and binary "
        "tensors. Call the endpoint with TritonClient.stream() or generate(), because infer(), infer_many() and "
        "submit() do not work. This annotation has the level `info`: `cdk synth --strict` ignores it.",
        "Calling an endpoint",
        "info",
    ),
    ConstructCode(
        "cdk-triton:GpuMemoryOfMultiModel",
        "a multi-model variant scales on GPU memory",
        "A multi-model endpoint keeps models in GPU memory until it is full, so this metric does not follow the load. "
        "Scale on invocations or on concurrent requests.",
        "Scaling",
    ),
    ConstructCode(
        "cdk-triton:GrantWithoutEffect",
        "a grant to invoke an endpoint allows nothing",
        "An endpoint has no resource policy, so the call has to be allowed by a policy of a caller in the endpoint's "
        "account. Grant the permission to a role of this account, and let callers of other accounts or services assume "
        "the role.",
        "Endpoints and variants",
    ),
    ConstructCode(
        "cdk-triton:GuardrailsOfMultiModel",
        "a multi-model endpoint has a deployment policy",
        "Two pages of AWS disagree on whether multi-model endpoints support deployment guardrails. Try the policy in "
        "your account, then acknowledge the warning.",
        "Updates",
    ),
    ConstructCode(
        "cdk-triton:HostDriver",
        "the NVIDIA driver of the host may not suit the release or the GPU",
        "The container may not find a GPU, because the driver of the host is too old for the CUDA of the image or for "
        "the GPU. Another possible reason is that the image has CUDA 12 and the host a newer CUDA. Containers have "
        "failed with this combination; for Blackwell, AWS's reports disagree. If you set inference_ami_version, remove "
        "it, so that release and GPU determine the host AMI. Otherwise, serve with 25.09 or newer.",
        "Endpoints and variants",
    ),
    ConstructCode(
        "cdk-triton:ImagePullNotGranted",
        "the execution role may have no permission to pull the image",
        "The image's name does not show a repository of Amazon ECR, so the library cannot grant the pull. Call "
        "grant_pull(model.role) on the image's repository. If the image is in a registry inside the VPC, acknowledge "
        "the warning.",
        "An image of your own",
    ),
    ConstructCode(
        "cdk-triton:InstanceCountKept",
        "updates keep the instance count of a variant that is not scaled",
        "If one variant of an endpoint is scaled, updates keep the counts of all variants, and a changed "
        "initial_instance_count has no effect. Give each variant limits with auto_scale_instance_count.",
        "Scaling",
    ),
    ConstructCode(
        "cdk-triton:KeyNotGranted",
        "the policy of a key is not in this app",
        "The key was imported or belongs to another account, so the app cannot change its policy. Ask its owner to "
        "allow the actions that the warning lists.",
        "Security",
    ),
    ConstructCode(
        "cdk-triton:LongBuild",
        "builds and rehearsals may take longer than a deployment waits",
        "A deployment that has to do everything fails after 50 minutes; the next deployment uses the builds that are "
        "already running or finished. Run `cdk-triton artifacts build` before the deployment.",
        "Builds",
    ),
    ConstructCode(
        "cdk-triton:MetricsEveryFewMinutes",
        "an endpoint publishes its metrics less often than once per minute",
        "Alarms and scaling policies are evaluated every minute, so gaps in the data make them act late. Publish at "
        "least once per minute.",
        "Monitoring",
    ),
    ConstructCode(
        "cdk-triton:ModelInAnotherStack",
        "the endpoint and its model are in different stacks",
        "A changed model gets another name, and CloudFormation rejects the change of a value that another stack "
        "imports, so each change of the model fails. Put the endpoint and the model into one stack.",
        "Endpoints and variants",
    ),
    ConstructCode(
        "cdk-triton:ModelLoadGpuLimit",
        "model_load_gpu_limit is set for a multi-model endpoint",
        "If a load exceeds the limit, Triton answers with status 400, but SageMaker unloads other models only after "
        "status 507. So the request fails. Remove the setting.",
        "Endpoints and variants",
    ),
    ConstructCode(
        "cdk-triton:NeverScalesOut",
        "a scaling target cannot be exceeded",
        "Application Auto Scaling adds instances when the metric is above the target, which this metric cannot "
        "exceed. Choose a lower target.",
        "Scaling",
    ),
    ConstructCode(
        "cdk-triton:NewerRelease",
        "the release is newer than the tables of the library",
        "The checks use the versions and rules of the newest release in the tables. Upgrade cdk-triton if a newer "
        "version has this release, or try the image in your account.",
        "An image of your own",
    ),
    ConstructCode(
        "cdk-triton:NoEndpointWait",
        "no function waits for an endpoint that is being scaled",
        "While the number of instances changes, SageMaker rejects updates and deletions of an endpoint. A function of "
        "a model's artifact store waits for the end of the change, but imported models and models of your own have no "
        "store. Suspend scaling before each deployment, then acknowledge the warning.",
        "Scaling",
    ),
    ConstructCode(
        "cdk-triton:NoPublisher",
        "something needs a publisher that a multi-model endpoint does not have",
        "Without ensembles, an endpoint answers nothing unless a publisher adds some, and only a publisher has a "
        "catalogue to read. The app may call add_publisher() later, so this is reported at the end of the synthesis.",
        "Publish ensembles without a stack",
        Severity.ERROR,
    ),
    ConstructCode(
        "cdk-triton:NoRouteToSourceStore",
        "the functions of a store in a VPC may not reach the store that it promotes from",
        "VPC endpoints serve their own region only. So a store in a VPC without a route to the internet cannot promote "
        "from another region. Select subnets with a NAT gateway, or acknowledge this if both stores are in one region.",
        "Network and data",
    ),
    ConstructCode(
        "cdk-triton:NoWayOut",
        "a model, a builder or a store is in subnets without a route to an AWS service that it needs",
        "An instance without a route to S3 waits for its archive until the start fails, and builds and the functions "
        "of a store wait until they time out. Call add_vpc_endpoints(vpc), for a store with store_functions=True, or "
        "select subnets with a NAT gateway.",
        "Network and data",
    ),
    ConstructCode(
        "cdk-triton:NotRead",
        "the rules did not read a part of a repository",
        "The rules do not open the files of some backends, such as OpenVINO, and the plans of TensorRT "
        "whose network is not in the repository. A fault in such a file appears when the server loads the model, so "
        "load it once in the serving image. This annotation has the level `info`: `cdk synth --strict` "
        "ignores it, and `cdk-triton validate` lists the same parts.",
        "Check models and apps",
        "info",
    ),
    ConstructCode(
        "cdk-triton:NotRehearsed",
        "the way in which a model serves a repository with golden requests cannot be rehearsed",
        "A rehearsal reads an archive, which a model with uncompressed=True does not have, and sends requests of "
        "KServe's protocol, which a container with the inference_type generate or generate_stream does not read. "
        "Another model may rehearse the same repository. Acknowledge the warning, or remove the golden requests.",
        "Rehearse before the endpoint changes",
    ),
    ConstructCode(
        "cdk-triton:NothingScales",
        "the number of instances has limits, but no policy scales it",
        "Without a policy or a schedule, nothing changes the number of instances within these limits. A policy on a "
        "metric that SageMaker does not publish for asynchronous endpoints changes nothing either. Call a scale_on_ "
        "method of the object that auto_scale_instance_count returned.",
        "Scaling",
    ),
    ConstructCode(
        "cdk-triton:PayloadsExceedInstance",
        "the largest requests of an asynchronous endpoint do not fit into an instance",
        "An instance may get several requests of the size max_payload at a time, and Triton keeps three copies of a "
        "request in JSON. The copies need more memory than the instance has, or the requests and the model need more "
        "space than the volume has. Lower max_payload or max_concurrent_invocations_per_instance, or use a larger "
        "instance.",
        "Asynchronous endpoints",
    ),
    ConstructCode(
        "cdk-triton:PingOfMultiModel",
        "the ping mode of a multi-model endpoint does not suit the names of its models",
        "Triton 26.04 to 26.06 looks up models by name alone when it answers /ping in the mode 'ready'. If two loaded "
        "archives have a model of the same name, /ping fails, and SageMaker replaces the container. Remove ping_mode, "
        "or rename the models.",
        "Endpoints and variants",
    ),
    ConstructCode(
        "cdk-triton:PipelineAssets",
        "the archives of an app are too large for a pipeline",
        "CodePipeline passes the whole cloud assembly to each deployment, and accepts at most 256 MB. Give recipes "
        "their large files from S3, as S3File(bucket, key, sha256).",
        "Pipelines and several accounts",
    ),
    ConstructCode(
        "cdk-triton:ProducedFile",
        "cdk-triton.toml lists a file that no recipe makes",
        "The server would not find the file. Add the recipe that makes it, to the repository or to the publisher, or "
        "put the file into the repository. `cdk-triton fleet publish` reports this error, too.",
        "Recipes",
        Severity.ERROR,
    ),
    ConstructCode(
        "cdk-triton:PublicSubnets",
        "a model is in public subnets",
        "In public subnets, the network interfaces of SageMaker's instances get no public address, so the instances "
        "cannot reach S3. Select private subnets, or call add_vpc_endpoints(vpc).",
        "Network and data",
    ),
    ConstructCode(
        "cdk-triton:Recipe",
        "a recipe does not fit its repository or serving platform",
        "The build would fail, or the server could not load the files that the recipe makes. The message names the "
        "recipe, the value and the fix.",
        "Recipes",
        Severity.ERROR,
    ),
    ConstructCode(
        "cdk-triton:Rehearsal",
        "a repository with golden requests cannot be rehearsed",
        "The deployment could not show that the server loads the repository and answers as expected. The message names "
        "the reason and the fix. To deploy without rehearsals, run cdk with `-c cdk-triton:rehearsal=skip`.",
        "Rehearse before the endpoint changes",
        Severity.ERROR,
    ),
    ConstructCode(
        "cdk-triton:RehearsalSkipped",
        "a model with golden requests is deployed without a rehearsal",
        "The context has `cdk-triton:rehearsal=skip`, so a model that does not load, or answers wrongly, is "
        "noticed only on the endpoint. Deploy without this context value.",
        "Rehearse before the endpoint changes",
    ),
    ConstructCode(
        "cdk-triton:RoleNotGranted",
        "the app adds no policy to a role that was given",
        "The role was imported with mutable=False, belongs to another account, or comes from without_policy_updates. "
        "The warning lists the actions and resources that the role needs. Ask the owner of the role to allow them, "
        "then acknowledge the warning.",
        "Roles and trust policies",
    ),
    ConstructCode(
        "cdk-triton:RoleNotTrusted",
        "SageMaker is not allowed to assume a role of the app that a model got",
        "SageMaker would reject the model. Add iam.ServicePrincipal('sagemaker.amazonaws.com') to assumed_by of the "
        "role, if need be in an iam.CompositePrincipal, or omit role=. The app may still add to the trust policy, so "
        "this is reported at the end of the synthesis.",
        "Roles and trust policies",
        Severity.ERROR,
    ),
    ConstructCode(
        "cdk-triton:RollbackAlarmTooSlow",
        "an update may end before its alarms can go off",
        "The deployment policy watches its alarms for less time than an alarm needs to go off, so the alarm may not "
        "roll the update back. Let the policy wait longer, or give the alarms shorter periods or fewer datapoints.",
        "Roll back and promote",
    ),
    ConstructCode(
        "cdk-triton:SharedMemory",
        "the Python models of a multi-model endpoint do not fit into the container's shared memory together",
        "Each instance of a Python model takes shm_default_byte_size bytes of the container's 64 MB of /dev/shm. If "
        "the next ensemble does not fit, the server answers 507, and SageMaker unloads another ensemble, whose next "
        "request waits until it is loaded again. Lower shm_default_byte_size, run fewer instances, or distribute the "
        "ensembles over several endpoints. Published ensembles are not counted.",
        "Multi-model endpoints",
    ),
    ConstructCode(
        "cdk-triton:SharedModelNames",
        "ensembles of a multi-model endpoint have inner models of the same name",
        "Python writes bytecode into the directory of a Python model. Each time SageMaker loads one of these "
        "ensembles, Triton reloads the models of the same names in other archives whose directories have changed, and "
        "meanwhile the other ensembles answer more slowly. Give the inner models of each ensemble names that no other "
        "ensemble uses. Or serve with 24.11 or newer, and set PYTHONDONTWRITEBYTECODE to 1.",
        "Multi-model endpoints",
    ),
    ConstructCode(
        "cdk-triton:StaysAtZero",
        "an asynchronous endpoint may scale to zero instances, but no policy starts the first instance",
        "Requests may wait until they expire. Call scale_on_backlog, which creates the policy for the first instance.",
        "Scaling",
    ),
    ConstructCode(
        "cdk-triton:TopicNotGranted",
        "the policy of a topic or of its key is not in this app",
        "Messages are lost if the service that sends them is not allowed to publish to the topic or to use the topic's "
        "KMS key. Ask the owner to allow the actions that the warning lists, or give the topic a KMS key of the app.",
        "Security",
    ),
    ConstructCode(
        "cdk-triton:UpdateStep",
        "the first step of a deployment policy does not suit the number of instances",
        "SageMaker accepts a first step of at most 50 % of the instances or copies. The step has to be at least 1 % "
        "(Canary), 5 % (Rolling) or 10 % (Linear). Choose another step, another number of instances or copies, or "
        "other limits of scaling.",
        "Updates",
    ),
    ConstructCode(
        "cdk-triton:UpdateWithoutAlarms",
        "a deployment policy waits, but has no alarms",
        "The wait costs money, but cannot lead to a rollback. Pass alarms=, or call roll_back_on.",
        "Updates",
    ),
    ConstructCode(
        "cdk-triton:VolumeSize",
        "volume_size is given for an instance type with local NVMe disks",
        "As far as is known, SageMaker rejects a volume size for such types. Remove volume_size, or try it in your "
        "account.",
        "Endpoints and variants",
    ),
    ConstructCode(
        "cdk-triton:WeakStoreReference",
        "stacks use an artifact store by weak references",
        "CloudFormation allows you to delete or replace the store while endpoints need it. Make the references to "
        "its bucket strong, or protect its stack from deletion, then acknowledge the warning.",
        "The artifact store",
    ),
)

CONSTRUCT_CODES: Final = tuple(sorted((*_OTHER_CODES, *COMPONENT_CODES, *VARIANT_CODES)))
"""In the order of their names."""
