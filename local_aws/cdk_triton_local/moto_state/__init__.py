"""The state of the local AWS: moto, and the corrections that moto 5.2.5 needs.

moto's backends belong to the process, so one process holds one local AWS.

* `state` reads moto's state for the rest of the local AWS, and resets it;
* `corrections` makes every correction; `cloudwatch`, `scaling`, `roles`, `machines`, `objects` and `overwriting`
  contain some of them;
* `dispatch` finds the service of a request, or names the one that moto does not have; requests to IAM wait for each
  other;
* `missing` makes the error for an operation that moto does not implement;
* `patching` replaces a method of moto's, and raises an error if moto does not have the method.

These methods of moto are replaced. A test fails when moto no longer has one of them.

* `moto.cloudwatch.models.CloudWatchBackend.put_metric_alarm`: moto takes a new alarm for OK, and a changed one, too;
* `moto.cloudwatch.models.CloudWatchBackend.put_metric_data`: moto keeps an object for each value of a distribution;
* `moto.s3.models.FakeBucket.get_permission`: moto applies a Deny statement without its Condition, so
  `enforce_ssl` would lock every bucket;
* `moto.s3.models.FakeKey.__getstate__`: moto copies the content of every object of a bucket for each page of
  ListObjectVersions, and keeps the copies;
* `moto.s3.models.FakeKey.__setstate__`: the same;
* `moto.s3.responses.S3Response.upload_part_copy`: moto copies a part although its source is not the object that the
  request expects;
* `moto.sagemaker.models.SageMakerModelBackend.add_tags`: moto keeps the old value of a tag beside the new one;
* `moto.sagemaker.models.FakeEndpointConfig.validate_instance_type`: moto's list of instance types ends with g4dn,
  p3 and inf1;
* `moto.sagemaker.models.FakeEndpointConfig.validate_production_variants`: moto takes no variant with instance pools;
* `moto.sagemaker.models.SageMakerModelBackend.validate_production_variants`: moto fails for a variant without a model,
  which hosts inference components;
* `moto.iam.models.IAMBackend.create_service_linked_role`: moto derives a wrong name for the role of Application Auto
  Scaling;
* `moto.iam.models.IAMBackend.get_roles`: moto fails if a role is created or deleted while CreateFunction looks for its
  own;
* `moto.stepfunctions.parser.models.StepFunctionsParserBackend.start_execution`: moto runs all machines or none,
  waits as long as in a waiter's definition, and does not name an execution that has no name;
* `moto.stepfunctions.parser.models.StepFunctionsParserBackend._validate_definition`: moto rejects definitions of
  machines that it does not run;
* `moto.stepfunctions.parser.models.StepFunctionsParserBackend._get_executions`: moto looks for map runs even in
  executions that it does not run;
* `moto.stepfunctions.parser.models.StepFunctionsParserBackend.list_map_runs`: moto fails for an execution that waits
  to be run;
* `moto.stepfunctions.parser.asl.component.state.wait.wait_function.wait_function.WaitFunction._wait_interval`: moto
  waits for a build as long as in its definition;
* `moto.stepfunctions.parser.asl.eval.environment.Environment.set_error`: moto takes an aborted execution for a failed
  one if a function that is still running fails;
* `moto.applicationautoscaling.responses.ApplicationAutoScalingResponse._validate_params`: moto does not have the
  dimension of the copies of inference components.

The others are methods of `moto.applicationautoscaling.models.ApplicationAutoscalingBackend`:

* `.register_scalable_target`: moto checks neither that the variant exists nor that a new target has limits, and leaves
  its instance count outside the new bounds;
* `.deregister_scalable_target`: moto leaves the policies and scheduled actions of the target behind;
* `.put_scaling_policy`: moto takes a policy without a target, and an update changes the ARN;
* `.put_scheduled_action`: moto takes an action without a target;
* `.delete_scaling_policy`: moto raises a different error for a missing policy;
* `.describe_scaling_policies`: moto mixes up two variants if the name of one begins with that of the other.

The name `boto_client_for` of three modules of moto's interpreter of state machines is replaced, too: see `machines`.

`cdk_triton_local.endpoints.operations` also sets attributes of moto's endpoints and endpoint configurations. Inference
components are in an attribute of moto's SageMaker backend. `cdk_triton_local.wire` uses moto's parsers and serialisers.
Everything else uses moto through its HTTP interface.
"""

from cdk_triton_local.moto_state.state import MotoState

__all__ = ["MotoState"]
