"""IAM roles and policies. They are stored and returned; nothing here checks permissions with them."""

# ruff: noqa: D102  (what create, update and delete do is documented on ResourceType)

from __future__ import annotations

import json
from typing import Any

from cdk_triton.errors import LocalError
from cdk_triton_local.cloudformation.resource_types._calls import document, missing_is_fine, picked
from cdk_triton_local.cloudformation.resource_types.base import (
    Context,
    PhysicalResource,
    Properties,
    ResourceType,
    register,
)

MAX_MANAGED_POLICY = 6_144
"""Characters of a managed policy, without whitespace ("IAM and STS quotas")."""

MAX_ATTACHED_POLICIES = 10
"""Managed policies of a role, unless AWS was asked for more ("IAM and STS quotas")."""

MAX_INLINE_POLICIES = 10_240
"""Characters that the inline policies of one role may have together, without whitespace ("IAM and STS quotas")."""


@register
class Role(ResourceType):
    """AWS::IAM::Role."""

    type_name = "AWS::IAM::Role"
    note = "A role with its inline and managed policies, checked for IAM's size limit; permissions are not enforced."
    modelled = frozenset(
        {
            "AssumeRolePolicyDocument",
            "Description",
            "ManagedPolicyArns",
            "MaxSessionDuration",
            "Path",
            "PermissionsBoundary",
            "Policies",
            "RoleName",
            "Tags",
        }
    )
    attributes = frozenset({"Arn", "RoleId"})

    def create(self, context: Context, properties: Properties) -> PhysicalResource:
        name = properties.get("RoleName") or context.generated_name(64)
        role = context.client("iam").create_role(
            RoleName=name,
            AssumeRolePolicyDocument=document(properties["AssumeRolePolicyDocument"]),
            Tags=context.tag_list(properties),
            **picked(properties, "Description", "MaxSessionDuration", "Path", "PermissionsBoundary"),
        )["Role"]
        self._apply_policies(context, name, properties, {})
        return PhysicalResource(name, {"Arn": role["Arn"], "RoleId": role["RoleId"]})

    def update(
        self, context: Context, physical: PhysicalResource, properties: Properties, previous: Properties
    ) -> PhysicalResource:
        iam = context.client("iam")
        iam.update_assume_role_policy(
            RoleName=physical.id, PolicyDocument=document(properties["AssumeRolePolicyDocument"])
        )
        iam.update_role(RoleName=physical.id, **picked(properties, "Description", "MaxSessionDuration"))
        if boundary := properties.get("PermissionsBoundary"):
            iam.put_role_permissions_boundary(RoleName=physical.id, PermissionsBoundary=boundary)
        elif "PermissionsBoundary" in previous:
            iam.delete_role_permissions_boundary(RoleName=physical.id)
        self._apply_policies(context, physical.id, properties, previous)
        return physical

    def delete(self, context: Context, physical: PhysicalResource, properties: Properties) -> None:
        iam = context.client("iam")
        with missing_is_fine():
            # CloudFormation detaches the template's policies; any other policy makes IAM reject the deletion.
            for policy in properties.get("Policies", []):
                iam.delete_role_policy(RoleName=physical.id, PolicyName=policy["PolicyName"])
            for arn in properties.get("ManagedPolicyArns", []):
                iam.detach_role_policy(RoleName=physical.id, PolicyArn=arn)
            iam.delete_role(RoleName=physical.id)

    @staticmethod
    def _apply_policies(context: Context, name: str, properties: Properties, previous: Properties) -> None:
        iam = context.client("iam")
        wanted = {policy["PolicyName"]: policy["PolicyDocument"] for policy in properties.get("Policies", [])}
        for policy in previous.get("Policies", []):
            if policy["PolicyName"] not in wanted:
                with missing_is_fine():
                    iam.delete_role_policy(RoleName=name, PolicyName=policy["PolicyName"])
        for policy_name, policy_document in wanted.items():
            put_inline_policy(iam, name, policy_name, document(policy_document))
        attached, dropped = set(properties.get("ManagedPolicyArns", [])), set(previous.get("ManagedPolicyArns", []))
        for arn in sorted(dropped - attached):
            with missing_is_fine():
                iam.detach_role_policy(RoleName=name, PolicyArn=arn)
        for arn in sorted(attached - dropped):
            attach_policy(iam, name, arn)


@register
class Policy(ResourceType):
    """AWS::IAM::Policy."""

    type_name = "AWS::IAM::Policy"
    note = "An inline policy of the named roles; permissions are not enforced. Users and groups are not modelled."
    modelled = frozenset({"PolicyDocument", "PolicyName", "Roles"})
    attributes = frozenset({"Id"})

    def create(self, context: Context, properties: Properties) -> PhysicalResource:
        self._put(context, properties)
        name = context.generated_name(128)
        return PhysicalResource(name, {"Id": name})

    def update(
        self, context: Context, physical: PhysicalResource, properties: Properties, previous: Properties
    ) -> PhysicalResource:
        self._put(context, properties)
        kept = set(properties.get("Roles", [])) if properties["PolicyName"] == previous["PolicyName"] else set()
        self._remove(context, previous["PolicyName"], set(previous.get("Roles", [])) - kept)
        return physical

    def delete(self, context: Context, physical: PhysicalResource, properties: Properties) -> None:
        self._remove(context, properties["PolicyName"], set(properties.get("Roles", [])))

    @staticmethod
    def _put(context: Context, properties: Properties) -> None:
        iam = context.client("iam")
        for role in properties.get("Roles", []):
            put_inline_policy(iam, role, properties["PolicyName"], document(properties["PolicyDocument"]))

    @staticmethod
    def _remove(context: Context, name: str, roles: set[str]) -> None:
        for role in sorted(roles):
            with missing_is_fine():
                context.client("iam").delete_role_policy(RoleName=role, PolicyName=name)


@register
class ManagedPolicy(ResourceType):
    """AWS::IAM::ManagedPolicy."""

    type_name = "AWS::IAM::ManagedPolicy"
    note = (
        "A managed policy and its attachment to roles, checked for IAM's limits; permissions are not enforced. Users "
        "and groups are not modelled."
    )
    modelled = frozenset({"Description", "ManagedPolicyName", "Path", "PolicyDocument", "Roles"})
    attributes = frozenset({"PolicyArn", "PolicyId"})

    def create(self, context: Context, properties: Properties) -> PhysicalResource:
        iam = context.client("iam")
        policy = iam.create_policy(
            PolicyName=properties.get("ManagedPolicyName") or context.generated_name(128),
            PolicyDocument=self._checked_document(properties),
            Tags=context.tag_list({}),
            **picked(properties, "Description", "Path"),
        )["Policy"]
        for role in properties.get("Roles", []):
            attach_policy(iam, role, policy["Arn"])
        return PhysicalResource(policy["Arn"], {"PolicyArn": policy["Arn"], "PolicyId": policy["PolicyId"]})

    def update(
        self, context: Context, physical: PhysicalResource, properties: Properties, previous: Properties
    ) -> PhysicalResource:
        iam = context.client("iam")
        # IAM keeps at most five versions; CloudFormation keeps the current one only.
        version = iam.create_policy_version(
            PolicyArn=physical.id, PolicyDocument=self._checked_document(properties), SetAsDefault=True
        )["PolicyVersion"]["VersionId"]
        for old in iam.list_policy_versions(PolicyArn=physical.id)["Versions"]:
            if old["VersionId"] != version:
                iam.delete_policy_version(PolicyArn=physical.id, VersionId=old["VersionId"])
        before, after = set(previous.get("Roles", [])), set(properties.get("Roles", []))
        for role in sorted(after - before):
            attach_policy(iam, role, physical.id)
        for role in sorted(before - after):
            with missing_is_fine():
                iam.detach_role_policy(RoleName=role, PolicyArn=physical.id)
        return physical

    def delete(self, context: Context, physical: PhysicalResource, properties: Properties) -> None:
        iam = context.client("iam")
        with missing_is_fine():
            for role in properties.get("Roles", []):
                iam.detach_role_policy(RoleName=role, PolicyArn=physical.id)
            iam.delete_policy(PolicyArn=physical.id)

    @staticmethod
    def _checked_document(properties: Properties) -> str:
        text = document(properties["PolicyDocument"])
        if len(json.dumps(json.loads(text), separators=(",", ":"))) > MAX_MANAGED_POLICY:
            raise LocalError(f"Cannot exceed quota for PolicySize: {MAX_MANAGED_POLICY}")
        return text


def attach_policy(iam: Any, role: str, arn: str) -> None:
    """AttachRolePolicy with IAM's limit on a role's managed policies, which moto does not have.

    Raises:
        LocalError: the role has reached the limit.
    """
    if len(iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]) >= MAX_ATTACHED_POLICIES:
        raise LocalError(f"Cannot exceed quota for PoliciesPerRole: {MAX_ATTACHED_POLICIES}")
    iam.attach_role_policy(RoleName=role, PolicyArn=arn)


def put_inline_policy(iam: Any, role: str, name: str, policy: str) -> None:
    """PutRolePolicy with IAM's limit on the inline policies of a role, which moto does not have.

    Raises:
        LocalError: the policies would be too large together; nothing is changed.
    """
    policies = {
        each: iam.get_role_policy(RoleName=role, PolicyName=each)["PolicyDocument"]
        for each in iam.list_role_policies(RoleName=role)["PolicyNames"]
    }
    policies[name] = json.loads(policy)
    size = sum(len(json.dumps(each, separators=(",", ":"))) for each in policies.values())
    if size > MAX_INLINE_POLICIES:
        raise LocalError(
            f"Maximum policy size of {MAX_INLINE_POLICIES} bytes exceeded for role {role}: its inline policies would "
            f"have {size}"
        )
    iam.put_role_policy(RoleName=role, PolicyName=name, PolicyDocument=policy)
