"""What is made before what, in a stack that has everything: a store that builds, a model, a fleet and their endpoint.

CloudFormation makes what does not depend on each other in any order, and removes it in any: what goes well here and
fails there is a dependency that the template lacks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam

from cdk_triton import TritonArtifactStore, TritonEndpoint, TritonModel, TritonMultiModel, TritonVariant

if TYPE_CHECKING:
    from tests.hosting.conftest import World

MODEL, ENDPOINT, DELIVERY = "AWS::SageMaker::Model", "AWS::SageMaker::Endpoint", "Custom::TritonArtifacts"
POLICIES = ("AWS::IAM::ManagedPolicy", "AWS::IAM::Policy")


class Template:
    """The resources of a stack, and which of them come first."""

    def __init__(self, resources: dict[str, Any]) -> None:
        self._resources = resources

    def named(self, *kinds: str, begins: str = "") -> set[str]:
        """The logical ids of some types."""
        return {name for name, each in self._resources.items() if each["Type"] in kinds and name.startswith(begins)}

    def before(self, name: str) -> set[str]:
        """Everything that is there before a resource is made, and goes after it."""
        found: set[str] = set()
        waiting = [name]
        while waiting:
            resource = self._resources[waiting.pop()]
            direct = {*_references(resource.get("Properties")), *resource.get("DependsOn", [])}
            new = (direct & self._resources.keys()) - found
            found |= new
            waiting += new
        return found


def _references(value: Any) -> Iterator[str]:
    match value:
        case {"Ref": str(name)} | {"Fn::GetAtt": [str(name), *_]}:
            yield name
        case dict():
            for each in value.values():
                yield from _references(each)
        case list():
            for each in value:
                yield from _references(each)


@pytest.fixture(name="template", scope="module")
def _template(shared_world: World) -> Template:
    world = shared_world
    env = cdk.Environment(account="111122223333", region="eu-west-1")  # where both builders are
    stack = cdk.Stack(world.app(), "Stack", env=env)
    store = TritonArtifactStore(stack, "Store")
    theirs = iam.Role(stack, "Theirs", assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"))
    built, packed = world.repository_with_plan("built"), world.repository("packed")
    model = TritonModel(stack, "Model", repository=built, platform=world.platform, store=store)
    fleet = TritonMultiModel(stack, "Fleet", ensembles={"text": packed}, platform=world.platform, store=store)
    granted = TritonModel(stack, "Granted", repository=packed, platform=world.platform, store=store, role=theirs)
    shadow = TritonVariant(model=granted, variant_name="Shadow")
    for endpoint in (
        TritonEndpoint(stack, "Shadowed", model=model, shadow=shadow),
        TritonEndpoint(stack, "Served", model=fleet),
    ):
        count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=2)
        count.scale_on_invocations("Requests", max_requests_per_second=40)
    return Template(world.template(stack)["Resources"])


@pytest.mark.parametrize("model", ["Model", "Fleet", "Granted"])
def test_a_model_comes_after_its_archives_and_all_that_its_role_may_do(template: Template, model: str) -> None:
    (made,) = template.named(MODEL, begins=model)
    needed = template.named(DELIVERY, begins=model) | template.named(*POLICIES, begins=model)

    assert len(needed) == 2
    assert needed <= template.before(made)


def test_archives_come_after_all_that_handlers_and_builds_may_do(template: Template) -> None:
    allowed = template.named(*POLICIES, begins="Store")
    deliveries = template.named(DELIVERY)

    assert len(allowed) == 5  # two handlers, their waiter, and the jobs of two builders
    assert len(deliveries) == 3
    for delivery in deliveries:
        assert allowed <= template.before(delivery)


def test_an_endpoint_goes_before_any_of_its_models_and_their_roles(template: Template) -> None:
    for endpoint, models in {"Shadowed": ("Model", "Granted"), "Served": ("Fleet",)}.items():
        (made,) = template.named(ENDPOINT, begins=endpoint)
        of_models = {name for model in models for name in template.named(MODEL, *POLICIES, DELIVERY, begins=model)}

        assert len(of_models) == 3 * len(models)
        assert of_models <= template.before(made)


def test_what_scales_an_endpoint_comes_after_it_and_goes_before(template: Template) -> None:
    kinds = ("AWS::ApplicationAutoScaling::ScalableTarget", "AWS::ApplicationAutoScaling::ScalingPolicy")
    for endpoint in ("Shadowed", "Served"):
        (made,) = template.named(ENDPOINT, begins=endpoint)
        scaling = template.named(*kinds, begins=endpoint)

        assert len(scaling) == 2
        assert all(made in template.before(each) for each in scaling)
