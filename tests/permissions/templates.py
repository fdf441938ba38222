"""The roles of synthesised templates, with policies whose references are resolved to plausible ARNs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tests.permissions.judging import Document, Request, document

__all__ = ["ACCOUNT", "REGION", "TemplateRole", "Templates"]

ACCOUNT, REGION = "111122223333", "eu-west-1"

PSEUDO: Final = {
    "AWS::AccountId": ACCOUNT,
    "AWS::Partition": "aws",
    "AWS::Region": REGION,
    "AWS::StackId": f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/stack/id",
    "AWS::StackName": "stack",
    "AWS::URLSuffix": "amazonaws.com",
}
ARNS: Final = {
    "AWS::CloudWatch::Alarm": "cloudwatch:{place}:alarm:{name}",
    "AWS::CodeBuild::Project": "codebuild:{place}:project/{name}",
    "AWS::IAM::Role": f"iam::{ACCOUNT}:role/{{name}}",
    "AWS::KMS::Key": "kms:{place}:key/{name}",
    "AWS::Lambda::Function": "lambda:{place}:function:{name}",
    "AWS::Logs::LogGroup": "logs:{place}:log-group:{name}:*",
    "AWS::S3::Bucket": "s3:::{name}",
    "AWS::SNS::Topic": "sns:{place}:{name}",
    "AWS::SageMaker::Endpoint": "sagemaker:{place}:endpoint/{name}",
    "AWS::SageMaker::InferenceComponent": "sagemaker:{place}:inference-component/{name}",
    "AWS::StepFunctions::StateMachine": "states:{place}:stateMachine:{name}",
}
REF_IS_ARN: Final = {
    "AWS::SNS::Topic",
    "AWS::SageMaker::Endpoint",
    "AWS::SageMaker::InferenceComponent",
    "AWS::StepFunctions::StateMachine",
}


@dataclass
class TemplateRole:
    """A role of a template.

    Attributes:
        name: its logical id without the digest at the end, such as `StoreIsCompleteRole`.
        trust: its trust policy.
        policies: its policies.
    """

    name: str
    trust: dict[str, Any]
    policies: list[dict[str, Any]] = field(default_factory=list)


class Templates:
    """The templates of stacks that are deployed together, in the order of their deployment.

    Attributes:
        roles: the roles, by their names.
        resource_policies: the policies of buckets, keys and topics, by their ARNs.
        names: how ARNs name a resource here, by its logical id without the digest at its end; the ARN of a key too.
    """

    def __init__(self, templates: Sequence[Mapping[str, Any]]) -> None:
        self.roles: dict[str, TemplateRole] = {}
        self.resource_policies: dict[str, dict[str, Any]] = {}
        self.names: dict[str, str] = {}
        exports: dict[str, Any] = {}
        for template in templates:
            resolver = _Resolver(template, exports)
            self._add_roles(template["Resources"], resolver)
            self._add_resource_policies(template["Resources"], resolver)
            self.names |= {name[:-8]: name.lower() for name in template["Resources"]}
            exports |= {
                resolver.value(output["Export"]["Name"]): resolver.value(output["Value"])
                for output in template.get("Outputs", {}).values()
                if "Export" in output
            }

    def resource_policy(self, request: Request) -> Document | None:
        """The policy of the resource of a request, if these templates have one."""
        arn = request.resource or ""
        found = self.resource_policies.get(arn.partition("/")[0] if ":s3:" in arn else arn)
        return None if found is None else document(found)

    def _add_roles(self, resources: Mapping[str, Any], resolver: _Resolver) -> None:
        by_id: dict[str, TemplateRole] = {}
        for name, resource in resources.items():
            if resource["Type"] == "AWS::IAM::Role":
                trust = resolver.value(resource["Properties"]["AssumeRolePolicyDocument"])
                by_id[name] = self.roles[name[:-8]] = TemplateRole(name[:-8], trust)
        for resource in resources.values():
            if resource["Type"] in ("AWS::IAM::ManagedPolicy", "AWS::IAM::Policy"):
                for role in resource["Properties"]["Roles"]:
                    by_id[role["Ref"]].policies.append(resolver.value(resource["Properties"]["PolicyDocument"]))

    def _add_resource_policies(self, resources: Mapping[str, Any], resolver: _Resolver) -> None:
        for name, resource in resources.items():
            properties = resource.get("Properties", {})
            match resource["Type"]:
                case "AWS::KMS::Key":
                    arn = self.names[f"{name[:-8]}Arn"] = resolver.value({"Fn::GetAtt": [name, "Arn"]})
                    self.resource_policies[arn] = resolver.value(properties["KeyPolicy"])
                case "AWS::S3::BucketPolicy":
                    bucket = f"arn:aws:s3:::{resolver.value(properties['Bucket'])}"
                    self.resource_policies[bucket] = resolver.value(properties["PolicyDocument"])
                case "AWS::SNS::TopicPolicy":
                    for topic in resolver.value(properties["Topics"]):
                        self.resource_policies[topic] = resolver.value(properties["PolicyDocument"])


class _Resolver:
    def __init__(self, template: Mapping[str, Any], exports: Mapping[str, Any]) -> None:
        self._resources = template["Resources"]
        self._exports = exports

    def value(self, value: Any) -> Any:
        """A value of the template with what its functions give."""
        if isinstance(value, list):
            return [self.value(each) for each in value]
        if not isinstance(value, Mapping):
            return value
        if len(value) == 1 and ((name := next(iter(value))) == "Ref" or name.startswith("Fn::")):
            return self._function(name, self.value(value[name]))
        return {key: self.value(each) for key, each in value.items()}

    def _function(self, name: str, argument: Any) -> Any:
        match name, argument:
            case "Ref", _:
                return PSEUDO.get(argument) or self._ref(argument)
            case "Fn::GetAtt", [resource, attribute]:
                return self._arn(resource) if attribute == "Arn" else f"{resource}.{attribute}".lower()
            case "Fn::Join", [separator, parts]:
                return separator.join(parts)
            case "Fn::Split", [separator, text]:
                return text.split(separator)
            case "Fn::Select", [index, parts]:
                return parts[int(index)]
            case "Fn::ImportValue", _:
                return self._exports[argument]
        raise ValueError(f"{name} is not known here")

    def _ref(self, name: str) -> str:
        if name not in self._resources:
            return name.lower()
        return self._arn(name) if self._resources[name]["Type"] in REF_IS_ARN else name.lower()

    def _arn(self, name: str) -> str:
        arn = ARNS[self._resources[name]["Type"]]
        return f"arn:aws:{arn.format(place=f'{REGION}:{ACCOUNT}', name=name.lower())}"
