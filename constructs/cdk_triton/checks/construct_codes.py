"""The codes of errors and warnings of the constructs, for `cdk-triton explain`.

The findings of rules are about a repository. These codes are about the rest of an app: other stacks, the policy of an
update, the network.
"""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["CONSTRUCT_CODES", "ConstructCode"]


class ConstructCode(NamedTuple):
    """The explanation of one code.

    Attributes:
        code: as `cdk synth` prints it.
        title: the finding, in one line.
        reason: why it matters, and what to do.
        page: the title of the page of the user guide; a wheel has no guide to open.
    """

    code: str
    title: str
    reason: str
    page: str

    @property
    def name(self) -> str:
        """The code without its prefix."""
        return self.code.partition(":")[2]


CONSTRUCT_CODES: Final[tuple[ConstructCode, ...]] = (
    ConstructCode(
        "cdk-triton:AlarmInAnotherStack",
        "a rollback alarm of an endpoint is in another stack",
        "CloudFormation rejects the removal of what another stack imports. So remove the alarm one deployment "
        "after the endpoint has stopped using it. Create the alarm in the endpoint's stack.",
        "Updates that roll back",
    ),
    ConstructCode(
        "cdk-triton:ArtifactStoreInStack",
        "the stack of a model got an artifact store of its own",
        "If the first deployment of the stack fails, the bucket stays and no stack owns it. Create a "
        "TritonArtifactStore in a stack of its own, and pass it as store=.",
        "The artifact store",
    ),
    ConstructCode(
        "cdk-triton:AsyncBucketNotExpiring",
        "an imported bucket keeps the requests and answers of an asynchronous endpoint",
        "The app cannot add lifecycle rules to an imported bucket, so requests and answers stay until somebody deletes "
        "them. Add rules for the three prefixes to the bucket.",
        "Asynchronous endpoints",
    ),
    ConstructCode(
        "cdk-triton:AsyncBucketNotGranted",
        "the bucket of an asynchronous endpoint belongs to another account",
        "The policy of the bucket has to let the execution roles of the models read requests and write answers, and "
        "this app cannot change that policy. Without it every request fails.",
        "Asynchronous endpoints",
    ),
    ConstructCode(
        "cdk-triton:AsyncTopicNotGranted",
        "an imported topic gets the notifications of an asynchronous endpoint",
        "The app does not read the key and the policy of an imported topic. Make sure that the execution roles may "
        "use the key, and that a topic of another account lets them publish.",
        "Asynchronous endpoints",
    ),
    ConstructCode(
        "cdk-triton:BuildImagePullNotGranted",
        "the role of the builds may not pull the image",
        "The name of the image is not that of a repository in Amazon ECR, so the library cannot grant the pull. Call "
        "grant_pull on its repository for each of the store's build_roles.",
        "The builders",
    ),
    ConstructCode(
        "cdk-triton:BuildTimeout",
        "a build may take longer than its builder allows",
        "The service ends the job at the time limit. The next deployment builds the rest. Give the builder a longer "
        "timeout.",
        "Builds",
    ),
    ConstructCode(
        "cdk-triton:CaptureNotGranted",
        "the bucket of data capture belongs to another account",
        "The policy of the bucket has to allow s3:PutObject to the execution roles of the models, and this app cannot "
        "change that policy. Without it nothing is captured.",
        "Keys and names",
    ),
    ConstructCode(
        "cdk-triton:CaptureOfMultiModel",
        "data capture is on for a multi-model variant",
        "SageMaker's table of supported features does not offer data capture for multi-model endpoints. Look in your "
        "account whether anything is captured.",
        "Endpoints and variants",
    ),
    ConstructCode(
        "cdk-triton:CaptureOfScaledVariant",
        "an endpoint with data capture has a scaled variant",
        "An update of a scaled endpoint keeps properties of the endpoint. AWS does not document whether data capture "
        "is one of them. After a change, compare it with DataCaptureConfig of describe-endpoint.",
        "Captured data",
    ),
    ConstructCode(
        "cdk-triton:ComponentMemory",
        "a component reserves nearly all the memory of an instance",
        "A host keeps a part of its memory, and AWS does not document how much. If no instance has room, the "
        "component fails to start. Lower memory=, or try it in your account and acknowledge this.",
        "Inference components",
    ),
    ConstructCode(
        "cdk-triton:ComponentOfOtherModel",
        "a component runs a model that is not a TritonModel of the app",
        "The library cannot check its network and its archive. Its network has to be that of the other components, "
        "and components.role needs the permissions of the model's own role.",
        "Inference components",
    ),
    ConstructCode(
        "cdk-triton:CopiesBeyondInstances",
        "the copies of the components may scale further than the instances",
        "Copies beyond the room of max_instance_count stay pending. Raise max_instance_count=, or lower the "
        "maximum of the copies.",
        "Inference components",
    ),
    ConstructCode(
        "cdk-triton:CopiesWaitForInstances",
        "the first copies need more instances than the endpoint starts with",
        "The deployment waits until SageMaker has added instances. Raise initial_instance_count=.",
        "Inference components",
    ),
    ConstructCode(
        "cdk-triton:DaliMemory",
        "DALI keeps its GPU memory when SageMaker unloads a model",
        "The memory of an unloaded DALI model is not free for other models. Set DALI's backend option "
        "release_after_unload in the environment.",
        "Endpoints and variants",
    ),
    ConstructCode(
        "cdk-triton:EncryptionKeyOfLocalDisks",
        "encryption_key is given for an instance type with local NVMe disks",
        "The instance encrypts such disks with a key of its own, and SageMaker may reject the endpoint configuration. "
        "Remove the key, or try it in your account.",
        "Endpoints and variants",
    ),
    ConstructCode(
        "cdk-triton:EndpointNameCase",
        "the name of an imported endpoint is known during the deployment only",
        "An endpoint's ARN has the name in lower case. If the name has capitals, a grant by name allows nothing. "
        "Import the endpoint with its ARN.",
        "Endpoints and variants",
    ),
    ConstructCode(
        "cdk-triton:GpuMemoryOfMultiModel",
        "a multi-model variant scales on GPU memory",
        "A multi-model endpoint keeps models in memory until the memory is full, whatever the load. Scale on "
        "invocations or on concurrent requests.",
        "Scaling",
    ),
    ConstructCode(
        "cdk-triton:GrantWithoutEffect",
        "a grant to invoke an endpoint allows nothing",
        "An endpoint has no policy of its own. So the policy of a caller in the endpoint's account has to allow the "
        "call. Grant to a role of that account, which callers of other accounts or services assume.",
        "Endpoints and variants",
    ),
    ConstructCode(
        "cdk-triton:GuardrailsOfMultiModel",
        "a multi-model endpoint has a deployment policy",
        "Two pages of AWS differ on whether multi-model endpoints support deployment guardrails. Try AllAtOnce in "
        "your account first.",
        "Updates",
    ),
    ConstructCode(
        "cdk-triton:HostDriver",
        "the NVIDIA driver of the host may not suit the release or the GPU",
        "The container may not find a GPU. The driver of inference_ami_version is too old for CUDA or GPU, or the "
        "release has CUDA 12 on Blackwell, for which AWS's reports disagree. Remove inference_ami_version: the library "
        "derives one from release and GPU. On Blackwell, serve with 25.09 or newer.",
        "Endpoints and variants",
    ),
    ConstructCode(
        "cdk-triton:ImagePullNotGranted",
        "the execution role may not pull the image",
        "The name of the image is not that of a repository in Amazon ECR, so the library cannot grant the pull. Call "
        "grant_pull(model.role) on its repository.",
        "Endpoints and variants",
    ),
    ConstructCode(
        "cdk-triton:InstanceCountKept",
        "updates keep the instance count of a variant that is not scaled",
        "If one variant of an endpoint is scaled, updates keep the counts of all variants. A changed "
        "initial_instance_count has no effect. Give each variant limits with auto_scale_instance_count.",
        "Scaling",
    ),
    ConstructCode(
        "cdk-triton:InstancesStay",
        "a component scales to zero, and its instances cannot go",
        "Instances go to zero only if min_instance_count is 0 and every component has a minimum of 0.",
        "Inference components",
    ),
    ConstructCode(
        "cdk-triton:KeyNotGranted",
        "the policy of a key is not in this app",
        "The key was imported or belongs to another account, so the library cannot change its policy. Let the key's "
        "owner allow what the message names.",
        "Keys and names",
    ),
    ConstructCode(
        "cdk-triton:LongBuild",
        "a build may take longer than a deployment waits",
        "The deployment fails after 50 minutes, and the next one uses the finished builds of the first. Run "
        "`cdk-triton artifacts build` before the deployment.",
        "Builds",
    ),
    ConstructCode(
        "cdk-triton:MetricsEveryFewMinutes",
        "an endpoint publishes its metrics less often than each minute",
        "Alarms and scaling policies evaluate each minute, so they find gaps and act late. Publish at least each "
        "minute.",
        "The metrics of an endpoint",
    ),
    ConstructCode(
        "cdk-triton:ModelInAnotherStack",
        "the endpoint and its model are in different stacks",
        "A changed model has another name, and CloudFormation rejects the change of what another stack imports. So "
        "each update fails. Put both into one stack.",
        "Endpoints and variants",
    ),
    ConstructCode(
        "cdk-triton:ModelLoadGpuLimit",
        "model_load_gpu_limit is set for a multi-model endpoint",
        "Triton answers a load beyond the limit with 400. SageMaker unloads other models only at 507, so the request "
        "fails. Remove the setting.",
        "Endpoints and variants",
    ),
    ConstructCode(
        "cdk-triton:NeverScalesOut",
        "a scaling target cannot be exceeded",
        "Application Auto Scaling adds instances above the target, and the metric cannot be higher than that. Choose "
        "a lower target.",
        "Scaling",
    ),
    ConstructCode(
        "cdk-triton:NewerRelease",
        "the release is newer than the tables of the library",
        "The checks take the versions and rules of the newest release in the tables. Upgrade cdk-triton if a newer "
        "version has this release, or try the image in your account.",
        "Network, images and data",
    ),
    ConstructCode(
        "cdk-triton:NoEndpointWait",
        "no function waits for an endpoint that is being scaled",
        "While the number of instances changes, SageMaker rejects updates and deletions of an endpoint. The store of a "
        "model has a function that waits for the end. Imported models and models of your own have no store. Stop "
        "scaling before a deployment, then acknowledge the warning.",
        "Scaling",
    ),
    ConstructCode(
        "cdk-triton:NoInitialCopy",
        "a component begins with no copy",
        "SageMaker rejects a new component without a copy, as a user reports. Begin with one copy, and scale to "
        "zero afterwards.",
        "Inference components",
    ),
    ConstructCode(
        "cdk-triton:NoRoomForRollback",
        "the rollback of an inference component's update finds no free GPUs",
        "Without a batch of its own, a rollback starts all old copies at once beside the new ones. Give the policy a "
        "rollback_batch, or raise max_instance_count.",
        "Inference components",
    ),
    ConstructCode(
        "cdk-triton:NoRoomForUpdate",
        "an update of a component has no room",
        "An update starts a new copy before the old one ends. It needs free GPUs on the instances, or one more "
        "instance below max_instance_count.",
        "Inference components",
    ),
    ConstructCode(
        "cdk-triton:NoWayOut",
        "the subnets of a model have no way to an AWS service that it needs",
        "An instance without a way to S3 waits for its archive until the start fails. Call add_vpc_endpoints(vpc), or "
        "select subnets with a NAT gateway.",
        "Network, images and data",
    ),
    ConstructCode(
        "cdk-triton:NothingScales",
        "the number of instances has limits, and no policy scales it",
        "Call a scale_on_ method of the object that auto_scale_instance_count returned.",
        "Scaling",
    ),
    ConstructCode(
        "cdk-triton:PayloadsExceedInstance",
        "the largest requests of an asynchronous endpoint do not fit into an instance",
        "Triton holds three copies of a request of JSON. With max_payload and the requests that an instance gets at a "
        "time, these are larger than its memory, or with the model larger than its volume. Lower one of the two, or "
        "use a larger instance.",
        "Asynchronous endpoints",
    ),
    ConstructCode(
        "cdk-triton:PingOfMultiModel",
        "the ping mode of a multi-model endpoint does not suit the names of its models",
        "Triton 26.04 to 26.06 looks up models by name alone when it answers /ping in the mode 'ready'. Two loaded "
        "archives with a model of the same name make it fail, and SageMaker replaces the container. Remove ping_mode, "
        "or rename the models.",
        "Endpoints and variants",
    ),
    ConstructCode(
        "cdk-triton:PipelineAssets",
        "the archives of an app are too large for a pipeline",
        "CodePipeline gives each deployment the whole cloud assembly, of 256 MB at most. Let the large files of "
        "recipes come from S3, as S3File(bucket, key, sha256).",
        "Pipelines and several accounts",
    ),
    ConstructCode(
        "cdk-triton:ProducedFile",
        "cdk-triton.toml lists a file that no recipe makes",
        "The server would not find the file. Add the recipe that makes it, to the repository or to the publisher, or "
        "put the file there. `cdk-triton fleet publish` reports this error, too.",
        "Recipes of this library",
    ),
    ConstructCode(
        "cdk-triton:PublicSubnets",
        "a model is in public subnets",
        "The network interfaces of SageMaker's instances get no public address there, so they have no way to S3. "
        "Select private subnets, or call add_vpc_endpoints(vpc).",
        "Network, images and data",
    ),
    ConstructCode(
        "cdk-triton:Recipe",
        "a recipe does not fit its repository or serving platform",
        "The build would fail, or the server could not load what it makes. The message names the recipe, the value "
        "and the fix.",
        "Recipes of this library",
    ),
    ConstructCode(
        "cdk-triton:RoleNotGranted",
        "the app adds no policy to a role that was given",
        "The role was imported with mutable=False, or is of another account, or is one without_policy_updates. The "
        "warning lists the actions and resources that the role needs. Let its owner allow them, then acknowledge "
        "the warning.",
        "Roles and trust policies",
    ),
    ConstructCode(
        "cdk-triton:RollbackAlarmTooSlow",
        "an update may end before its alarms can go off",
        "The policy watches its alarms for less time than an alarm needs. Wait longer, or give the alarms shorter "
        "periods or fewer datapoints.",
        "Updates that roll back",
    ),
    ConstructCode(
        "cdk-triton:ScaleToZeroInstances",
        "the instances of an endpoint may go to zero",
        "Some regions reject a MinInstanceCount of 0, as a user reports. Deploy it once in your region, then "
        "acknowledge this.",
        "Inference components",
    ),
    ConstructCode(
        "cdk-triton:ShadowWithoutCopies",
        "the shadow of an endpoint has the weight 0",
        "No request is copied to the shadow, and its instances cost all the same. Give it a positive initial_weight, "
        "or remove it.",
        "Endpoints and variants",
    ),
    ConstructCode(
        "cdk-triton:SharedModelNames",
        "ensembles of a multi-model endpoint have inner models of the same name",
        "Python writes bytecode beside the model's file. Each time SageMaker loads one of these ensembles, Triton "
        "looks at the models of the same names in all archives, and loads those again whose directories have changed. "
        "Give the inner models of each ensemble names of their own, or serve with 24.11 or newer.",
        "Concepts",
    ),
    ConstructCode(
        "cdk-triton:StaysAtZero",
        "an asynchronous endpoint may come to zero instances, and nothing starts the first one",
        "Call scale_on_backlog, which makes the policy for the first instance. Otherwise requests may wait until they "
        "expire.",
        "Scaling",
    ),
    ConstructCode(
        "cdk-triton:TopicNotGranted",
        "the policy of a topic or of its key is not in this app",
        "A service that may not publish to a topic, or not use its key, loses its messages. Let the owner allow what "
        "the message names, or give the topic a key of the app.",
        "Keys and names",
    ),
    ConstructCode(
        "cdk-triton:UpdateStep",
        "a variant has too few instances for the step of a deployment policy",
        "SageMaker moves 1 to 50 % of the instances first. With few instances the update is rejected. Choose another "
        "step or other limits.",
        "Updates",
    ),
    ConstructCode(
        "cdk-triton:UpdateWithoutAlarms",
        "a deployment policy waits and has no alarms",
        "The wait costs instances and cannot lead to a rollback. Pass alarms=, or call add_rollback_alarms.",
        "Updates",
    ),
    ConstructCode(
        "cdk-triton:VariantsInDifferentNetworks",
        "the models of an endpoint's variants differ in subnets or isolation",
        "AWS does not document whether one endpoint accepts that. Give the models the same network, or try "
        "create-endpoint-config with both, which starts no instance.",
        "Network, images and data",
    ),
    ConstructCode(
        "cdk-triton:VariantsServeDifferentModels",
        "variants of one endpoint serve different target models",
        "A request that names no variant may reach a variant without its target model, and fails there. Give all "
        "variants but one the weight 0, and let callers name the variant.",
        "Endpoints and variants",
    ),
    ConstructCode(
        "cdk-triton:VolumeSize",
        "volume_size is given for an instance type with local NVMe disks",
        "SageMaker rejects the size of a volume for such types, as far as is known. Remove it, or try it in your "
        "account.",
        "Endpoints and variants",
    ),
    ConstructCode(
        "cdk-triton:WeakStoreReference",
        "stacks use an artifact store by weak references",
        "CloudFormation allows the deletion or replacement of the store while endpoints need it. Make the references "
        "to the store strong, or protect its stack from deletion.",
        "The artifact store",
    ),
)
