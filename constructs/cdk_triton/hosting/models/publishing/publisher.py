"""`TritonPublisher`: publishes ensembles of a multi-model endpoint without a deployment."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, astuple, replace

from aws_cdk import Aws, Duration, RemovalPolicy
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from cdk_triton.artifacts.keys import key_inputs
from cdk_triton.artifacts.publisher_description import PUBLISHER_METADATA, PublisherDescription
from cdk_triton.errors import ConfigurationError
from cdk_triton.hosting.access.permissions import Statement, allow, managed_policy
from cdk_triton.hosting.access.trust import states_of_the_account
from cdk_triton.hosting.models.publishing.definition import MAX_CHANGE_MINUTES, Builds, Functions, definition
from cdk_triton.hosting.models.publishing.encryption import encryption, let_log_delivery_decrypt
from cdk_triton.hosting.models.publishing.grants import Served, executions_arn, grant_publish, grant_read_published
from cdk_triton.hosting.models.publishing.recipes import Recipes
from cdk_triton.hosting.naming.acknowledgements import (
    acknowledge,
    acknowledge_nist,
    acknowledge_wildcards,
    imported_objects_arns,
)
from cdk_triton.hosting.naming.per_construct import arn_of, encryption_key_of, path_of
from cdk_triton.hosting.naming.runbooks import alarm_description, runbook_of
from cdk_triton.hosting.naming.service_names import unique_name
from cdk_triton.hosting.naming.stacks import stack_of
from cdk_triton.hosting.store.provider import HandlerFunctions, handler_code, lambda_role, log_writing
from cdk_triton.protocol import layout
from cdk_triton.sagemaker import ServingPlatform
from cdk_triton.triton import ContainerEnvironment
from cdk_triton.triton.shared_memory import with_shared_memory

__all__ = ["TritonPublisher", "add_publisher"]

FUNCTIONS = ("prepare", "change", "record", "count")

LOG_DELIVERY = (
    "logs:CreateLogDelivery",
    "logs:GetLogDelivery",
    "logs:UpdateLogDelivery",
    "logs:DeleteLogDelivery",
    "logs:ListLogDeliveries",
    "logs:PutResourcePolicy",
    "logs:DescribeResourcePolicies",
    "logs:DescribeLogGroups",
)
"""Permissions of a state machine that logs ("Logging Express and Standard workflows"); they cannot name log groups."""

MAX_CONCURRENCY = 10_000
"""Parallel child executions of a distributed map ("Quotas related to state machine executions")."""


class TritonPublisher(Construct):
    """A state machine that publishes ensembles, rolls them back and unpublishes them; see `add_publisher`.

    The state machine changes the catalogue, and the archives below one `TritonMultiModel`'s prefix for the present
    platform. It changes no stack and no endpoint. With `next_platform`, a second state machine does the same for the
    next platform, below a prefix that no endpoint serves yet.

    Attributes:
        state_machine_arn: the ARN of the state machine.
        alarm: the alarm that goes off if an execution fails, is aborted or times out. Add an action:
            `alarm.add_alarm_action(…)`.
        next: the publisher of `next_platform`, with its own state machine and alarm; None without `next_platform`.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        served: Served,
        *,
        environment: ContainerEnvironment,
        max_concurrency: int,
        recipes: Recipes | None,
        runbook_url: str | None,
        present: Served | None = None,
    ) -> None:
        super().__init__(scope, id)
        self._served = served
        self._recipes = recipes
        self._present = present
        self.next: TritonPublisher | None = None
        log_group = logs.LogGroup(
            self,
            "Logs",
            # An account has a resource policy of 5,120 characters that names the log group of each state machine which
            # is not below this prefix ("Avoiding Amazon CloudWatch Logs resource policy size restrictions",
            # https://docs.aws.amazon.com/step-functions/latest/dg/bp-cwl.html). So only this resource has a name.
            log_group_name=f"/aws/vendedlogs/states/{unique_name(self, 'Logs')}",
            retention=logs.RetentionDays.THREE_MONTHS,
            removal_policy=RemovalPolicy.DESTROY,
            encryption_key=encryption_key_of(served.store.bucket),
        )
        made = HandlerFunctions(handler_code(), log_group, served.network)
        multi_model = scope.node.path.removeprefix(f"{stack_of(self).node.path}/")
        environment = with_shared_memory(environment, served.platform.release)  # as its own container will have it
        described = PublisherDescription(
            multi_model, served.name, served.platform, environment, max_concurrency, is_next=present is not None
        )
        made_of = {name: self._function(made, name) for name in FUNCTIONS}
        builds = None
        if recipes is not None:
            described = replace(
                described,
                recipes=recipes.recipes,
                builder=recipes.builder,
                max_builds=recipes.max_builds,
                rehearse=recipes.rehearses,
                variables=environment.variables if recipes.rehearses else {},
            )
            made_of["build"] = recipes.handler
            builds = recipes.describe(described)
        self._machine = self._state_machine(Functions(**made_of), log_group, max_concurrency, builds)
        self._machine.add_metadata(PUBLISHER_METADATA, described.document())
        self.state_machine_arn: str = self._machine.ref
        self.alarm = self._alarm(runbook_url)

    def grant_publish(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow a principal to publish, roll back and unpublish.

        The principal can read the template of this stack, and write below `staging/publish/<fleet>/<its aws:userid>/`
        of the store. It can start and follow executions of this state machine, which does everything else. It can
        read the catalogue, and the reasons why ensembles failed. It can use the store's KMS key, which encrypts the
        uploads, the catalogue and the executions. The permissions cover the second state machine of `next_platform`,
        but neither other publishers of the store nor the uploads of other callers.

        Note for security: with recipes, the principal controls what a build does. Other stacks with the same artifact
        key use the archive that this principal's build has made.
        """
        grant = grant_publish(grantee, self._served, self._machine)
        return grant if self.next is None else grant.combine(self.next.grant_publish(grantee))

    def grant_publish_all(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow a principal to run `cdk-triton fleet publish --all`: to publish, and to read what is published.

        The command checks each archive for the next platform, so the principal can read the archives of this
        `TritonMultiModel`. With recipes, the principal can also read the sources of all archives in the store that were
        built for a publisher, and with `rehearse=True` their golden requests.
        """
        recipes = self._recipes
        is_built, is_rehearsed = recipes is not None, recipes is not None and recipes.rehearses
        reading = grant_read_published(grantee, self._served, is_built=is_built, is_rehearsed=is_rehearsed)
        return self.grant_publish(grantee).combine(reading)

    def _function(self, made: HandlerFunctions, name: str) -> str:
        """Create a function with its own role, and return its ARN."""
        store, multi_model, platform = self._served
        statements, reasons = self._statements(name)
        id = name.capitalize()
        role = lambda_role(self, f"{id}Role")
        allow(role, log_writing(made.log_group), *statements)
        acknowledge_wildcards(role, reasons)
        environment = {
            "STORE_BUCKET": store.bucket.bucket_name,
            "FLEET": multi_model,
            "PLATFORM": platform.label,
            "KEYS": json.dumps(asdict(key_inputs(platform))),
        }
        if name == "prepare" and self._present is not None:
            environment["PRESENT_PLATFORM"] = self._present.platform.label
        timeout = Duration.minutes(MAX_CHANGE_MINUTES)
        return made.function(self, id, f"artifacts.publishing.{name}", environment, timeout, role).function_arn

    def _statements(self, name: str) -> tuple[list[Statement], dict[str, str]]:
        """A function's permissions, and the reason for each ARN with a wildcard."""
        store, multi_model, platform = self._served
        served = f"{layout.fleet_prefix(multi_model, platform.label)}*.tar.gz"
        catalogue = f"{layout.catalogue_prefix(multi_model, platform.label)}*.json"
        requests = layout.request_key(multi_model, "*")
        uploads = layout.upload_key(multi_model, "*", "*")
        own = f"{layout.publishing_prefix(multi_model, platform.label)}*"
        index = layout.index_key(multi_model, platform.label)
        read, write = {
            "prepare": ([requests, index], [own, index]),
            "change": ([uploads, served, catalogue], [served, catalogue]),
            "record": ([], [own]),
            "count": ([own, catalogue], []),
        }[name]
        if name == "prepare" and self._present is not None:  # it names the ensembles of the stack
            read = [*read, layout.index_key(multi_model, self._present.platform.label)]
        if name == "change" and self._recipes is not None:
            read = [*read, own, f"{layout.ARTIFACTS_PREFIX}*"]
        if name == "change" and self._present is not None:  # ensembles that are published there are copied
            read = [*read, f"{layout.fleet_prefix(multi_model, self._present.platform.label)}*.tar.gz"]
        statements = []
        for action, keys in (("s3:GetObject", read), ("s3:PutObject", write)):
            if keys:
                statements.append(Statement([action], [f"{arn_of(store.bucket)}/{key}" for key in keys]))
        if name == "change" and self._recipes is not None:  # the copy of an archive that was built is resumed
            statements.append(Statement(["s3:ListMultipartUploadParts"], [f"{arn_of(store.bucket)}/{served}"]))
            statements.append(Statement(["s3:ListBucketMultipartUploads"], [arn_of(store.bucket)]))
        if read:  # s3:ListBucket makes a missing object a 404 instead of a 403
            statements.append(Statement(["s3:ListBucket"], [arn_of(store.bucket)]))
        statements += self._key_statements(reads=bool(read), writes=bool(write))
        why = "Ensembles are published after synth, so their names are not known at synth."
        wildcards = {key for key in (*read, *write) if "*" in key}
        return statements, {
            arn: why for key in sorted(wildcards) for arn in imported_objects_arns(self, store.bucket, key)
        }

    def _key_statements(self, *, reads: bool = True, writes: bool = True) -> list[Statement]:
        store = self._served.store
        key, statements = encryption_key_of(store.bucket), []
        if key is not None:
            # A function that only writes decrypts the S3 bucket key ("Configure AWS KMS key policies for CloudTrail").
            actions = ["kms:Decrypt", "kms:GenerateDataKey"] if writes else ["kms:Decrypt"]
            statements.append(Statement(actions, [key.key_arn]))
        if store.former_keys and reads:
            statements.append(Statement(["kms:Decrypt"], [each.key_arn for each in store.former_keys]))
        return statements

    def _state_machine(
        self, functions: Functions, log_group: logs.ILogGroup, max_concurrency: int, builds: Builds | None
    ) -> sfn.CfnStateMachine:
        bucket = self._served.store.bucket
        key = encryption_key_of(bucket)
        if key is not None:
            let_log_delivery_decrypt(self, key)
        prefix = layout.publishing_prefix(self._served.name, self._served.platform.label)
        own = f"{prefix}*"
        inside = Construct(self, "StateMachine")
        role = iam.Role(inside, "Role", assumed_by=states_of_the_account(self))
        objects = [f"{arn_of(bucket)}/{own}"]
        uploads = ["s3:PutObject", "s3:GetObject", "s3:ListMultipartUploadParts", "s3:AbortMultipartUpload"]
        allow(
            role,
            Statement(["lambda:InvokeFunction"], [arn for arn in astuple(functions) if arn is not None]),
            # The items and results of a distributed map ("IAM policies for using Distributed Map states").
            Statement(uploads, objects),
            Statement(LOG_DELIVERY, ["*"]),
            # For the items and results too, so the context of a state machine cannot be a condition.
            *self._key_statements(),
        )
        machine = sfn.CfnStateMachine(
            inside,
            "Resource",
            role_arn=role.role_arn,
            encryption_configuration=encryption(key),
            definition_string=stack_of(self).to_json_string(
                definition(
                    functions,
                    bucket=bucket.bucket_name,
                    prefix=prefix,
                    platform=self._served.platform.label,
                    partition=Aws.PARTITION,
                    max_concurrency=max_concurrency,
                    builds=builds,
                )
            ),
            logging_configuration=sfn.CfnStateMachine.LoggingConfigurationProperty(
                level="ALL",
                include_execution_data=False,
                destinations=[
                    sfn.CfnStateMachine.LogDestinationProperty(
                        cloud_watch_logs_log_group=sfn.CfnStateMachine.CloudWatchLogsLogGroupProperty(
                            log_group_arn=log_group.log_group_arn
                        )
                    )
                ],
            ),
        )
        machine.node.add_dependency(role)
        # A map starts executions of its own machine, whose ARN its role can only have in a policy that comes later.
        # Its guide has the pattern `<name>:*` and, for a redrive, `<name>/<label>:*` ("IAM policies for using
        # Distributed Map states").
        runs, children = executions_arn(machine, ":*"), executions_arn(machine, "/*")
        managed_policy(
            inside,
            "MapPermissions",
            [role],
            [
                Statement(["states:StartExecution"], [machine.ref]),
                Statement(
                    ["states:DescribeExecution", "states:RedriveExecution", "states:StopExecution"], [children, runs]
                ),
            ],
        )
        why = "Each execution has objects with its own name, which is not known at synth."
        reasons = dict.fromkeys(imported_objects_arns(self, bucket, own), why)
        reasons |= {
            "*": "The actions of log deliveries do not support resource-level permissions.",
            **dict.fromkeys((children, runs), "Step Functions makes the id of a map run when the map run starts."),
        }
        acknowledge_wildcards(inside, reasons)
        acknowledge(inside, {"SF2": "Tracing is for requests of users. The log has every state of every execution."})
        return machine

    def _alarm(self, runbook_url: str | None) -> cloudwatch.Alarm:
        names = ("ExecutionsFailed", "ExecutionsAborted", "ExecutionsTimedOut")
        failures: Mapping[str, cloudwatch.IMetric] = {
            f"m{number}": cloudwatch.Metric(
                namespace="AWS/States",
                metric_name=name,
                dimensions_map={"StateMachineArn": self.state_machine_arn},
                statistic="Sum",
                period=Duration.minutes(5),
            )
            for number, name in enumerate(names)
        }
        alarm = cloudwatch.Alarm(
            self,
            "Failures",
            alarm_description=alarm_description(
                self,
                "PublisherFailures",
                "an execution failed, was stopped or timed out, so ensembles were not published",
                "Read the error of the execution, which has the number of failures and the first reasons; then run "
                "the same cdk-triton command again, which completes the rest",
                runbook_of(self, runbook_url),
            ),
            metric=cloudwatch.MathExpression(
                expression="+".join(f"FILL({id}, 0)" for id in failures),
                using_metrics=failures,
                label="executions that failed",
                period=Duration.minutes(5),
            ),
            threshold=0,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
            evaluation_periods=1,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )
        acknowledge_nist(alarm, {"CloudWatchAlarmAction": "You choose the action: publisher.alarm.add_alarm_action()."})
        return alarm


def add_publisher(
    scope: Construct,
    served: Served,
    environment: ContainerEnvironment,
    *,
    max_concurrency: int,
    recipes: Callable[[Served], Recipes | None],
    next_platform: ServingPlatform | None = None,
    runbook_url: str | None = None,
) -> TritonPublisher:
    """Create the publisher of a `TritonMultiModel`, its child `Publisher`; for a next platform also `NextPublisher`.

    Args:
        scope: the `TritonMultiModel`.
        served: the destination of published ensembles.
        environment: how the container starts Triton.
        max_concurrency: how many ensembles each machine changes at a time.
        recipes: returns the checked recipes for a destination.
        next_platform: the platform that will serve it; None if the platform does not change.
        runbook_url: the page that the alarms link to; None: the address in the context, if there is one.

    Raises:
        ConfigurationError: there is a publisher; the store promotes from another store; the concurrency is out of its
            range; the next platform serves the same archives; or the runbook is not the address of a page.
    """
    if scope.node.try_find_child("Publisher") is not None:
        raise ConfigurationError(
            f"{path_of(scope)} already has a publisher: use the object that the first add_publisher() returned"
        )
    if served.store.promotes_from is not None:
        raise ConfigurationError(
            f"{path_of(scope)} cannot have a publisher, because its store promotes archives from another store and "
            "serves only archives that were tested there: use add_publisher() of a TritonMultiModel with that other "
            "store"
        )
    if not 1 <= max_concurrency <= MAX_CONCURRENCY:
        raise ConfigurationError(
            f"max_concurrency of the publisher of {path_of(scope)} is {max_concurrency}: use 1 to {MAX_CONCURRENCY}, "
            "because Step Functions does not run more child executions of a map at once"
        )
    if next_platform is not None and next_platform.label == served.platform.label:
        raise ConfigurationError(
            f"next_platform of the publisher of {path_of(scope)} and the present platform have the same label "
            f"{next_platform.label!r}, so both serve the same archives: remove next_platform, and change the present "
            "platform"
        )

    runbook_of(scope, runbook_url)  # before anything is created

    def made(id: str, where: Served, present: Served | None = None) -> TritonPublisher:
        return TritonPublisher(
            scope,
            id,
            where,
            environment=environment,
            max_concurrency=max_concurrency,
            recipes=recipes(where),
            runbook_url=runbook_url,
            present=present,
        )

    publisher = made("Publisher", served)
    if next_platform is not None:
        publisher.next = made("NextPublisher", served._replace(platform=next_platform), served)
    return publisher
