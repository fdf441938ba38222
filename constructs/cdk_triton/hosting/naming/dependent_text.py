"""Texts that set the order of a deployment: a resource that contains one depends on another, without an export."""

from __future__ import annotations

import jsii
from aws_cdk import CfnResource, IResolveContext, IStringProducer, Lazy, Stage

__all__ = ["dependent_text"]


def dependent_text(text: str, resource: CfnResource) -> str:
    """A token for a text. Every resource whose properties contain the token depends on another resource.

    `Fn::GetAtt` would also set the order of the two, but between stacks it is an export. CloudFormation does not change
    an export that another stack imports, so the text could never change.

    Args:
        text: the text in the template.
        resource: the resource that comes first.
    """
    return Lazy.uncached_string(_DependentText(text, resource))


@jsii.implements(IStringProducer)
class _DependentText:
    def __init__(self, text: str, resource: CfnResource) -> None:
        self._text = text
        self._resource = resource

    def produce(self, context: IResolveContext) -> str:
        """The CDK calls this for each resource that contains the text, before it writes a template."""
        user = context.scope
        if context.preparing and isinstance(user, CfnResource) and self._may_order(user):
            user.add_resource_dependency(self._resource)
        return self._text

    def _may_order(self, user: CfnResource) -> bool:
        """Whether it is another resource of the same stage, and not a pipeline that deploys the stage."""
        stages = [Stage.of(each) for each in (user, self._resource)]
        paths = {None if stage is None else stage.node.path for stage in stages}
        return len(paths) == 1 and user.node.path != self._resource.node.path
