"""SageMaker's operations on inference components, which moto lacks: state here, servers in an `EndpointHost`.

A component is `Creating`, `Updating` or `Deleting` until its host is done. The texts of errors are
those of the service where somebody has quoted them; the docstrings name the sources.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from cdk_triton.errors import LocalError
from cdk_triton_local.endpoints.components_room import most_instances, room_for, settle_instances
from cdk_triton_local.endpoints.hosting import Component, Container, EndpointHost
from cdk_triton_local.endpoints.operations import EndpointOperations
from cdk_triton_local.endpoints.rejected_updates import SageMakerError

__all__ = ["ComponentOperations", "ComponentState"]

NO_ROOM: Final = (
    "There is not enough hardware resources on the instances for this endpoint to create a copy of the inference "
    "component."
)
"""Quoted in the guide of Hugging Face's `deploy_ic.py`."""

_BUSY: Final = {"Creating": "CREATE_IN_PROGRESS", "Updating": "UPDATE_RC_IN_PROGRESS", "Deleting": "DELETE_IN_PROGRESS"}


@dataclass
class ComponentState:
    """One inference component.

    Attributes:
        component: the component, as its host needs it.
        endpoint_arn: the ARN of its endpoint.
        arn: its ARN, in which SageMaker writes its name in lower case.
        specification: its specification, from the last creation or update.
        copies: the current number of copies.
        room: the specification of each copy for which instances are reserved; during a change, also of the new copies.
        desired: the requested number of copies.
        status: as DescribeInferenceComponent reports it.
        scale: changes the number of copies; for Application Auto Scaling.
    """

    component: Component
    endpoint_arn: str
    arn: str
    specification: Mapping[str, Any]
    desired: int
    scale: Callable[[int], None]
    copies: int = 0
    room: Sequence[Mapping[str, Any]] = ()
    status: str = "Creating"
    failure_reason: str | None = None
    created: float = field(default_factory=time.time)
    modified: float = field(default_factory=time.time)

    def described(self) -> dict[str, Any]:
        """The answer of DescribeInferenceComponent."""
        described = {
            **self.summary(),
            "Specification": self.specification,
            "RuntimeConfig": {"DesiredCopyCount": self.desired, "CurrentCopyCount": self.copies},
        }
        return described if self.failure_reason is None else {**described, "FailureReason": self.failure_reason}

    def summary(self) -> dict[str, Any]:
        """An element of ListInferenceComponents."""
        return {
            "InferenceComponentName": self.component.name,
            "InferenceComponentArn": self.arn,
            "EndpointName": self.component.endpoint,
            "EndpointArn": self.endpoint_arn,
            "VariantName": self.component.variant,
            "InferenceComponentStatus": self.status,
            "CreationTime": self.created,
            "LastModifiedTime": self.modified,
        }


class ComponentOperations:
    """Create, describe, list, update, scale and delete components, and keep endpoints that have components.

    Args:
        host: runs the servers.
        endpoints: the operations on endpoints.
        found: moto's endpoints by name.
        client: a boto3 SageMaker client of the local AWS, for configurations.
        states: the components by name.
        account: the account and the region of ARNs, as `region:account`.
        log: called with one line per status of a component.
    """

    def __init__(
        self,
        host: EndpointHost,
        endpoints: EndpointOperations,
        found: Callable[[], MutableMapping[str, Any]],
        client: Any,
        states: Callable[[], MutableMapping[str, ComponentState]],
        account: str,
        log: Callable[[str], None],
    ) -> None:
        self._host = host
        self._endpoints = endpoints
        self._found = found
        self._client = client
        self._states = states
        self._account = account
        self._log = log
        self._lock = threading.Lock()
        self.operations: Mapping[str, Callable[[Mapping[str, Any]], Mapping[str, Any]]] = {
            "CreateInferenceComponent": self.create,
            "DeleteEndpoint": self.delete_endpoint,
            "DeleteInferenceComponent": self.delete,
            "DescribeInferenceComponent": lambda request: self._existing(request).described(),
            "ListInferenceComponents": self.list_all,
            "UpdateInferenceComponent": self.update,
            "UpdateInferenceComponentRuntimeConfig": self.scale,
        }

    def create(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """CreateInferenceComponent.

        The sentences about the endpoint and the copies are quoted in pulumi/pulumi-aws#4940 and stdapi-ai/stdapi.ai#43.

        Raises:
            SageMakerError: the name is taken, the endpoint hosts no components, or the component has no copy or needs a
                feature that is not modelled here.
        """
        name, copies = request["InferenceComponentName"], request.get("RuntimeConfig", {}).get("CopyCount", 1)
        endpoint = self._found().get(request["EndpointName"])
        if endpoint is None:
            raise SageMakerError(f'Could not find endpoint "{request["EndpointName"]}".')
        if name in self._states():
            raise SageMakerError(f'Cannot create already existing inference component "{self._states()[name].arn}".')
        variant = self._hosting_variant(endpoint)
        if variant is None:
            raise SageMakerError(
                "Invalid request provided: Inference Components are not supported in this Endpoint. Please make sure "
                "this endpoint can deploy inference components."
            )
        if endpoint.endpoint_status != "InService":
            raise SageMakerError(f'Cannot update in-progress endpoint "{endpoint.arn}".')
        if request.get("VariantName", variant["VariantName"]) != variant["VariantName"]:
            raise SageMakerError(f'Could not find variant "{request["VariantName"]}" of "{endpoint.arn}".')
        if copies < 1:
            raise SageMakerError("Inference components copy count an integer larger than 0")
        state = ComponentState(
            component=Component(
                name, endpoint.endpoint_name, variant["VariantName"], self._container(request["Specification"])
            ),
            endpoint_arn=endpoint.arn,
            arn=f"arn:aws:sagemaker:{self._account}:inference-component/{name.lower()}",
            specification=request["Specification"],
            desired=copies,
            scale=lambda count: self._scale(state, count),
        )
        self._states()[name] = state
        self._run_in_thread(
            state, "Creating", lambda: self._place(state, state.component, copies, [state.specification] * copies)
        )
        return {"InferenceComponentArn": state.arn}

    def update(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """UpdateInferenceComponent: new copies start, then the old ones end; a failure leaves the old ones.

        Raises:
            SageMakerError: there is no such component, it is busy, or it needs a feature that is not modelled here.
        """
        state = self._existing(request)
        specification = request.get("Specification", state.specification)
        component = Component(
            state.component.name, state.component.endpoint, state.component.variant, self._container(specification)
        )
        copies = request.get("RuntimeConfig", {}).get("CopyCount", state.desired)

        def change() -> None:
            # The new copies stand beside the old ones for a while.
            room = [*[specification] * copies, *[state.specification] * min(1, state.copies)]
            self._place(state, component, copies, room)
            state.component, state.specification = component, specification

        self._change(state, change)
        return {"InferenceComponentArn": state.arn}

    def scale(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """UpdateInferenceComponentRuntimeConfig.

        Raises:
            SageMakerError: there is no such component, or it is busy.
        """
        state = self._existing(request)
        self._scale(state, request["DesiredRuntimeConfig"]["CopyCount"])
        return {"InferenceComponentArn": state.arn}

    def delete(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """DeleteInferenceComponent: it is `Deleting` until its servers have ended, and then gone.

        A busy one is not deleted (quoted in the guide of Hugging Face's `deploy_ic.py`).

        Raises:
            SageMakerError: there is no such component, or it is busy.
        """
        state = self._existing(request)
        with self._lock:
            if state.status in _BUSY:
                raise SageMakerError(
                    f'Cannot delete inference component "{state.arn}" while it is in state {_BUSY[state.status]}.'
                )
            state.status = "Deleting"
        self._log(f"component {state.component.name}: Deleting")

        def remove() -> None:
            try:
                self._host.withdraw(state.component.name)
            except Exception as error:  # whatever a host raises must not leave it Deleting
                state.failure_reason = str(error) or type(error).__name__
                state.status = "Failed"
                self._log(f"component {state.component.name}: Failed: {state.failure_reason}")
                return
            self._states().pop(state.component.name, None)
            self._settle_instances(state)
            self._log(f"component {state.component.name}: deleted")

        threading.Thread(target=remove, name=f"component-{state.component.name}", daemon=True).start()
        return {}

    def list_all(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """ListInferenceComponents, by `EndpointNameEquals` where that is given, all on one page."""
        wanted = request.get("EndpointNameEquals")
        found = [state for state in self._states().values() if wanted in (None, state.component.endpoint)]
        return {"InferenceComponents": [state.summary() for state in found]}

    def delete_endpoint(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """DeleteEndpoint: not while it has components (gruntwork-io/cloud-nuke#1142).

        Raises:
            SageMakerError: the endpoint has components, or cannot be deleted for other reasons.
        """
        if any(self._of_endpoint(request["EndpointName"])):
            raise SageMakerError("Cannot delete endpoint with inference component associated")
        return self._endpoints.delete(request)

    def _scale(self, state: ComponentState, copies: int) -> None:
        self._change(state, lambda: self._place(state, state.component, copies, [state.specification] * copies))

    def _change(self, state: ComponentState, change: Callable[[], None]) -> None:
        with self._lock:
            if state.status in _BUSY:
                raise SageMakerError(f'Cannot update in-progress inference component "{state.arn}".')
            state.status = "Updating"
        self._run_in_thread(state, "Updating", change)

    def _run_in_thread(self, state: ComponentState, status: str, work: Callable[[], None]) -> None:
        """After a failure, a new component is `Failed`, and an older one is `InService` as before."""
        state.status = status
        self._log(f"component {state.component.name}: {status}")

        def run() -> None:
            try:
                work()
            except Exception as error:  # whatever a host raises is the component's failure
                state.failure_reason = str(error) or type(error).__name__
                state.desired = state.copies
                settled = "Failed" if status == "Creating" else "InService"
            else:
                state.failure_reason, settled = None, "InService"
            state.room = [state.specification] * state.copies
            self._settle_instances(state)
            state.modified = time.time()
            state.status = settled
            reason = f": {state.failure_reason}" if state.failure_reason else ""
            self._log(f"component {state.component.name}: {settled}{reason}, {state.copies} copies")

        threading.Thread(target=run, name=f"component-{state.component.name}", daemon=True).start()

    def _place(
        self, state: ComponentState, component: Component, copies: int, room: Sequence[Mapping[str, Any]]
    ) -> None:
        self._reserve_room(state, room)
        state.desired = copies
        self._host.place(component, copies)
        state.copies = copies

    def _reserve_room(self, state: ComponentState, room: Sequence[Mapping[str, Any]]) -> None:
        endpoint = self._found()[state.component.endpoint]
        variant = self._hosting_variant(endpoint)
        if variant is None:
            return
        instance_type, running = variant["InstanceType"], endpoint.production_variants[0]["CurrentInstanceCount"]
        free = self._endpoints.free_instances(instance_type)
        most = most_instances(variant, running, free)
        with self._lock:
            others = [
                one for each in self._of_endpoint(state.component.endpoint) if each is not state for one in each.room
            ]
            if room_for([*others, *room], instance_type, most):
                state.room = room
                return
        is_short = most < most_instances(variant, running, None)
        why = f" [{instance_type} has {free} instances free (cdk-triton local capacity)]" if is_short else ""
        raise LocalError(f"{NO_ROOM}{why}")

    def _settle_instances(self, state: ComponentState) -> None:
        endpoint = self._found().get(state.component.endpoint)
        variant = None if endpoint is None else self._hosting_variant(endpoint)
        if endpoint is not None and variant is not None:
            copies = [
                each.specification for each in self._of_endpoint(state.component.endpoint) for _ in range(each.copies)
            ]
            settle_instances(endpoint, variant, copies)

    def _of_endpoint(self, name: str) -> list[ComponentState]:
        return [state for state in list(self._states().values()) if state.component.endpoint == name]

    def _existing(self, request: Mapping[str, Any]) -> ComponentState:
        """SDKs look for the beginning of the error's text (sagemaker-python-sdk)."""
        name = request["InferenceComponentName"]
        if name not in self._states():
            raise SageMakerError(f'Could not find inference component "{name}".')
        return self._states()[name]

    def _hosting_variant(self, endpoint: Any) -> Mapping[str, Any] | None:
        """The variant in the endpoint's configuration, or None if it does not host components."""
        configuration = self._client.describe_endpoint_config(EndpointConfigName=endpoint.endpoint_config_name)
        first: Mapping[str, Any] = configuration["ProductionVariants"][0]
        return None if "ModelName" in first else first

    def _container(self, specification: Mapping[str, Any]) -> Container:
        if foreign := sorted(set(specification) - {"ComputeResourceRequirements", "ModelName", "StartupParameters"}):
            raise SageMakerError(
                f"Specification.{foreign[0]} of an inference component is not modelled by the local AWS, which serves "
                "components with a ModelName"
            )
        if "ModelName" not in specification or "ComputeResourceRequirements" not in specification:
            raise SageMakerError("an inference component needs a ModelName and ComputeResourceRequirements")
        container = self._endpoints.container_of(specification["ModelName"])
        if container.mode == "MultiModel":
            raise SageMakerError("Inference components are not supported for multi-model models.")
        return container
