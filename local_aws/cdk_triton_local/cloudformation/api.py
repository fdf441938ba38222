"""The operations of CloudFormation's API that the CDK CLI and a person with boto3 need. Others are rejected by name."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import unquote, urlparse

from cdk_triton.errors import TemplateError
from cdk_triton_local.cloudformation.describe import (
    describe_change_set,
    describe_event,
    describe_resource,
    describe_stack,
    describe_template,
    summarise_change_set,
    summarise_resource,
    summarise_stack,
)
from cdk_triton_local.cloudformation.engine import NO_CHANGES, ChangeSet, NoSuchStackError, TemplateEngine
from cdk_triton_local.cloudformation.plan import ChangePlan
from cdk_triton_local.cloudformation.requests import Request, check_capabilities, reject_unmodelled, settings_of
from cdk_triton_local.cloudformation.resource_imports import NotImportableError
from cdk_triton_local.cloudformation.resource_types import Services
from cdk_triton_local.cloudformation.stacks import Stack, Target
from cdk_triton_local.cloudformation.template import Template, parse_template
from cdk_triton_local.wire import QueryApiError, Reply
from cdk_triton_local.wire.query_api import answer

__all__ = ["CloudFormationApi"]

Result = Mapping[str, Any]

LONGEST_ANSWER = 20.0
"""How many seconds the CDK CLI waits at most for the answer about a running operation."""


class CloudFormationApi:
    """Answers CloudFormation requests.

    Args:
        engine: the stacks.
        services: where templates in S3 are read.
    """

    def __init__(self, engine: TemplateEngine, services: Services) -> None:
        self._engine = engine
        self._services = services

    def answer(self, body: bytes, caller: str = "") -> Reply:
        """Answer one form-encoded request.

        Args:
            body: the request.
            caller: its user agent. The CDK CLI looks at a running operation every five seconds (`waitFor` in
                `toolkit-lib/lib/util/promises.ts` of aws/aws-cdk-cli), so it is told at the end of the operation.
        """

        def handle(operation: str, request: Request) -> Result:
            if operation == "DescribeStacks" and "StackName" in request and "aws-cdk/" in caller:
                self._engine.await_end(request["StackName"], LONGEST_ANSWER)
            return self._handle(operation, request)

        return answer(body, handle)

    def _handle(self, operation: str, request: Request) -> Result:
        handler = OPERATIONS.get(operation)
        if handler is None:
            raise QueryApiError(
                "ValidationError",
                f"{operation} is not modelled by the local CloudFormation, which models {', '.join(OPERATIONS)}",
            )
        try:
            return handler(self, request)
        except TemplateError as error:
            raise QueryApiError("ValidationError", str(error)) from error

    # ------------------------------------------------------------------------------------------------ stacks

    def create_stack(self, request: Request) -> Result:
        """CreateStack."""
        reject_unmodelled(request)
        if self._existing(request["StackName"]) is not None:
            raise QueryApiError("AlreadyExistsException", f"Stack [{request['StackName']}] already exists")
        stack = self._engine.open(request["StackName"])
        target = self._target(None, request)
        plan = self._engine.plan(stack, target)
        self._engine.add(stack)
        stack.settings = settings_of(request)
        stack.termination_protection = bool(request.get("EnableTerminationProtection"))
        self._engine.deploy(stack, target, plan, request.get("ClientRequestToken", ""))
        return {"StackId": stack.id}

    def update_stack(self, request: Request) -> Result:
        """UpdateStack."""
        reject_unmodelled(request)
        stack = self._engine.stack(request["StackName"])
        self._engine.check_idle(stack)
        target = self._target(stack, request)
        plan = self._engine.plan(stack, target)
        if not plan.anything:
            raise TemplateError("No updates are to be performed.")
        stack.settings = settings_of(request)
        self._engine.deploy(stack, target, plan, request.get("ClientRequestToken", ""))
        return {"StackId": stack.id}

    def delete_stack(self, request: Request) -> Result:
        """DeleteStack."""
        try:
            stack = self._engine.stack(request["StackName"])
        except NoSuchStackError:
            return {}  # "Deleted stacks ..." are no error for DeleteStack
        if stack.status == "DELETE_COMPLETE":
            return {}
        if stack.termination_protection:
            raise TemplateError(f"Stack [{stack.name}] cannot be deleted while TerminationProtection is enabled")
        if stack.status == "REVIEW_IN_PROGRESS":
            self._engine.forget(stack)
            return {}
        retained = request.get("RetainResources", [])
        if retained and stack.status != "DELETE_FAILED":
            raise TemplateError("RetainResources can be used for a stack in DELETE_FAILED only")
        self._engine.delete(stack, retained, request.get("ClientRequestToken", ""))
        return {}

    def describe_stacks(self, request: Request) -> Result:
        """DescribeStacks."""
        if "StackName" in request:
            return {"Stacks": [self._described(self._engine.stack(request["StackName"]))]}
        return {"Stacks": [self._described(each) for each in self._engine.stacks() if each.status != "DELETE_COMPLETE"]}

    def _described(self, stack: Stack) -> Result:
        """The API type Stack, with the ids of the stacks around a nested stack."""
        around = list(self._around(stack))
        return {**describe_stack(stack), **({"ParentId": around[0].id, "RootId": around[-1].id} if around else {})}

    def _around(self, stack: Stack) -> Iterator[Stack]:
        for each in self._engine.stacks():
            if any(it.physical is not None and it.physical.id == stack.id for it in list(each.resources.values())):
                yield each
                yield from self._around(each)

    def list_stacks(self, request: Request) -> Result:
        """ListStacks."""
        wanted = request.get("StackStatusFilter")
        stacks = [each for each in reversed(self._engine.stacks()) if not wanted or each.status in wanted]
        return {"StackSummaries": [summarise_stack(each) for each in stacks]}

    def describe_stack_events(self, request: Request) -> Result:
        """DescribeStackEvents, newest first."""
        stack = self._engine.stack(request["StackName"])
        return {"StackEvents": [describe_event(stack, event) for event in reversed(stack.events)]}

    def describe_stack_resources(self, request: Request) -> Result:
        """DescribeStackResources, by stack or by physical id."""
        named = "StackName" in request
        stacks = [self._engine.stack(request["StackName"])] if named else self._engine.stacks()
        wanted, physical = request.get("LogicalResourceId"), request.get("PhysicalResourceId")
        found = [
            describe_resource(stack, name, resource)
            for stack in stacks
            for name, resource in stack.resources.items()
            if wanted in (None, name)
            and (physical is None or (resource.physical is not None and resource.physical.id == physical))
        ]
        return {"StackResources": found}

    def describe_stack_resource(self, request: Request) -> Result:
        """DescribeStackResource."""
        stack = self._engine.stack(request["StackName"])
        name = request["LogicalResourceId"]
        if name not in stack.resources:
            raise TemplateError(f"Resource {name} does not exist for stack {stack.name}")
        resource = stack.resources[name]
        return {
            "StackResourceDetail": {
                "StackName": stack.name,
                "StackId": stack.id,
                **summarise_resource(name, resource),
            }
        }

    def list_stack_resources(self, request: Request) -> Result:
        """ListStackResources."""
        stack = self._engine.stack(request["StackName"])
        return {"StackResourceSummaries": [summarise_resource(name, each) for name, each in stack.resources.items()]}

    def get_template(self, request: Request) -> Result:
        """GetTemplate; both stages are the same, because there are no transforms."""
        if "ChangeSetName" in request:
            text = self._change_set(request).target.template.text
        else:
            shown = self._engine.stack(request["StackName"]).shown
            text = "" if shown is None else shown.template.text
        return {"TemplateBody": text, "StagesAvailable": ["Original", "Processed"]}

    def get_template_summary(self, request: Request) -> Result:
        """GetTemplateSummary."""
        if "StackName" in request:
            shown = self._engine.stack(request["StackName"]).shown
            if shown is None:
                raise TemplateError(f"Stack {request['StackName']} has no template yet")
            return describe_template(shown)
        return describe_template(Target(self._template(None, request), {}))

    def validate_template(self, request: Request) -> Result:
        """ValidateTemplate: syntax and structure."""
        summary = describe_template(Target(self._template(None, request), {}))
        parameters = [
            {name: value for name, value in each.items() if name != "ParameterType"} for each in summary["Parameters"]
        ]
        return {"Parameters": parameters, "Description": summary.get("Description", ""), "DeclaredTransforms": []}

    def update_termination_protection(self, request: Request) -> Result:
        """UpdateTerminationProtection."""
        stack = self._engine.stack(request["StackName"])
        stack.termination_protection = bool(request["EnableTerminationProtection"])
        return {"StackId": stack.id}

    def list_exports(self, _: Request) -> Result:
        """ListExports."""
        return {
            "Exports": [
                {"ExportingStackId": stack.id, "Name": name, "Value": output.value}
                for name, (stack, output) in sorted(self._engine.exports().items())
            ]
        }

    def list_imports(self, request: Request) -> Result:
        """ListImports."""
        name = request["ExportName"]
        users = [stack.name for stack in self._engine.stacks() if name in stack.imports]
        if not users:
            raise TemplateError(f"Export '{name}' is not imported by any stack.")
        return {"Imports": users}

    # ------------------------------------------------------------------------------------------------ change sets

    def create_change_set(self, request: Request) -> Result:
        """CreateChangeSet; ready when it returns."""
        reject_unmodelled(request)
        kind = request.get("ChangeSetType", "UPDATE")
        stack = self._existing(request["StackName"])
        if kind == "CREATE":
            if stack is not None and stack.status != "REVIEW_IN_PROGRESS":
                raise QueryApiError(
                    "AlreadyExistsException", f"Stack [{stack.name}] already exists and cannot be created again"
                )
        elif kind == "UPDATE" and (stack is None or stack.status == "REVIEW_IN_PROGRESS"):
            raise NoSuchStackError(f"Stack [{request['StackName']}] does not exist")
        elif stack is not None:
            self._engine.check_idle(stack)
        new = stack is None
        if stack is None:
            stack = self._engine.open(request["StackName"])
        target = self._target(stack, request)
        plan: ChangePlan | None = None
        reason = ""
        try:
            plan = self._plan(stack, target, request)
        except NotImportableError as error:
            reason = str(error)
        if plan is not None and not plan.anything:
            plan, reason = None, NO_CHANGES
        if new:
            self._engine.add(stack)
            stack.transition("REVIEW_IN_PROGRESS", "User Initiated")
        name = request["ChangeSetName"]
        change_set = ChangeSet(
            id=f"arn:aws:cloudformation:{self._engine.region}:{self._engine.account}:changeSet/{name}/{uuid.uuid4()}",
            name=name,
            stack=stack,
            kind=kind,
            target=target,
            plan=plan,
            reason=reason,
            description=request.get("Description", ""),
            settings=settings_of(request),
        )
        if any(each.name == name and each.stack is stack for each in self._engine.change_sets.values()):
            raise QueryApiError("AlreadyExistsException", f"ChangeSet {name} already exists")
        self._engine.change_sets[change_set.id] = change_set
        return {"Id": change_set.id, "StackId": stack.id}

    def describe_change_set(self, request: Request) -> Result:
        """DescribeChangeSet."""
        return describe_change_set(
            self._change_set(request), property_values=bool(request.get("IncludePropertyValues"))
        )

    def list_change_sets(self, request: Request) -> Result:
        """ListChangeSets."""
        stack = self._engine.stack(request["StackName"])
        found = [each for each in self._engine.change_sets.values() if each.stack is stack]
        return {"Summaries": [summarise_change_set(each) for each in found]}

    def execute_change_set(self, request: Request) -> Result:
        """ExecuteChangeSet. Executing one deletes the stack's other change sets, as CloudFormation does."""
        reject_unmodelled(request)
        change_set = self._change_set(request)
        if change_set.plan is None or change_set.execution_status != "AVAILABLE":
            raise QueryApiError(
                "InvalidChangeSetStatus",
                f"ChangeSet [{change_set.id}] cannot be executed in its current status of [{change_set.status}]",
            )
        stack = change_set.stack
        self._engine.check_idle(stack)
        # The stack may have moved on since: CloudFormation then marks the change set OBSOLETE; ours is planned anew.
        plan = replace(self._engine.plan(stack, change_set.target), existing=change_set.plan.existing)
        change_set.execution_status = "EXECUTE_COMPLETE"
        stack.change_set_id = change_set.id
        stack.settings = change_set.settings
        for identifier, other in list(self._engine.change_sets.items()):
            if other.stack is stack and other is not change_set:
                del self._engine.change_sets[identifier]
        token = request.get("ClientRequestToken", "")
        self._engine.deploy(stack, change_set.target, plan, token, only_imports=change_set.kind == "IMPORT")
        return {}

    def delete_change_set(self, request: Request) -> Result:
        """DeleteChangeSet; a missing one is not an error, as in CloudFormation."""
        try:
            change_set = self._change_set(request)
        except QueryApiError:
            return {}
        del self._engine.change_sets[change_set.id]
        return {}

    def describe_events(self, _: Request) -> Result:
        """DescribeEvents, which the CLI calls for the failed validations of a change set: the list is empty."""
        return {"OperationEvents": []}

    def list_hook_results(self, _: Request) -> Result:
        """ListHookResults: there are no hooks."""
        return {"HookResults": []}

    # ------------------------------------------------------------------------------------------------ helpers

    def _existing(self, name: str) -> Stack | None:
        try:
            stack = self._engine.stack(name)
        except NoSuchStackError:
            return None
        return None if stack.status == "DELETE_COMPLETE" else stack

    def _change_set(self, request: Request) -> ChangeSet:
        name = request["ChangeSetName"]
        if name in self._engine.change_sets:
            return self._engine.change_sets[name]
        # A name leads to the stack that has it now, not to a deleted one that had it before.
        stack = self._existing(request.get("StackName", ""))
        for change_set in self._engine.change_sets.values():
            if change_set.name == name and change_set.stack is stack:
                return change_set
        raise QueryApiError("ChangeSetNotFound", f"ChangeSet [{name}] does not exist")

    def _plan(self, stack: Stack, target: Target, request: Request) -> ChangePlan:
        plan = self._engine.plan(stack, target)
        if request.get("ChangeSetType") == "IMPORT":
            return self._engine.imports.named(stack, target, plan, request.get("ResourcesToImport", []))
        return self._engine.imports.found(stack, target, plan) if request.get("ImportExistingResources") else plan

    def _target(self, stack: Stack | None, request: Request) -> Target:
        template = self._template(stack, request)
        check_capabilities(template, request.get("Capabilities", []))
        parameters = {
            each["ParameterKey"]: None if each.get("UsePreviousValue") else each.get("ParameterValue", "")
            for each in request.get("Parameters", [])
        }
        tags = {tag["Key"]: tag["Value"] for tag in request.get("Tags", [])}
        if request.get("ChangeSetType") == "IMPORT" and "Tags" not in request and stack is not None and stack.current:
            tags = dict(stack.current.tags)
        return self._engine.target(stack, template, parameters, tags)

    def _template(self, stack: Stack | None, request: Request) -> Template:
        if request.get("UsePreviousTemplate"):
            if stack is None or stack.current is None:
                raise TemplateError("UsePreviousTemplate needs a stack that has a template")
            return stack.current.template
        if "TemplateBody" in request:
            return parse_template(request["TemplateBody"])
        if "TemplateURL" in request:
            return parse_template(self._template_in_s3(request["TemplateURL"]))
        raise TemplateError("Either Template URL or Template Body must be specified.")

    def _template_in_s3(self, url: str) -> str:
        """CDK CLI writes the URL with the endpoint that it got, so its path is `/bucket/key`."""
        path = unquote(urlparse(url).path).lstrip("/")
        bucket, _, key = path.partition("/")
        host = urlparse(url).hostname or ""
        if ".s3." in host:  # virtual-hosted style: the bucket stands before the host
            bucket, key = host.split(".s3.")[0], path
        try:
            body = self._services.client("s3").get_object(Bucket=bucket, Key=key)["Body"]
        except Exception as error:
            raise TemplateError(f"S3 error: the template at {url} cannot be read: {error}") from error
        text: str = body.read().decode()
        return text


OPERATIONS: dict[str, Callable[[CloudFormationApi, Request], Result]] = {
    "CreateChangeSet": CloudFormationApi.create_change_set,
    "CreateStack": CloudFormationApi.create_stack,
    "DeleteChangeSet": CloudFormationApi.delete_change_set,
    "DeleteStack": CloudFormationApi.delete_stack,
    "DescribeChangeSet": CloudFormationApi.describe_change_set,
    "DescribeEvents": CloudFormationApi.describe_events,
    "DescribeStackEvents": CloudFormationApi.describe_stack_events,
    "DescribeStackResource": CloudFormationApi.describe_stack_resource,
    "DescribeStackResources": CloudFormationApi.describe_stack_resources,
    "DescribeStacks": CloudFormationApi.describe_stacks,
    "ExecuteChangeSet": CloudFormationApi.execute_change_set,
    "GetTemplate": CloudFormationApi.get_template,
    "GetTemplateSummary": CloudFormationApi.get_template_summary,
    "ListChangeSets": CloudFormationApi.list_change_sets,
    "ListExports": CloudFormationApi.list_exports,
    "ListHookResults": CloudFormationApi.list_hook_results,
    "ListImports": CloudFormationApi.list_imports,
    "ListStackResources": CloudFormationApi.list_stack_resources,
    "ListStacks": CloudFormationApi.list_stacks,
    "UpdateStack": CloudFormationApi.update_stack,
    "UpdateTerminationProtection": CloudFormationApi.update_termination_protection,
    "ValidateTemplate": CloudFormationApi.validate_template,
}
"""Every operation that is answered; the fidelity table prints it."""
