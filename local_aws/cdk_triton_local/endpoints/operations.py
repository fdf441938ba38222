"""SageMaker's endpoint operations: state in moto, servers in an `EndpointHost`.

moto answers CreateEndpoint with an endpoint that is in service at once, and lacks UpdateEndpoint. Here an endpoint is
`Creating` or `Updating` until its host reports that it answers. `FailureReason` has the reason of a failure. A failed
update, and one that an alarm stops, leave the endpoint in service with its old configuration, as SageMaker's blue/green
deployment does. moto does not keep the shadow and other members of an endpoint configuration, so this module adds them.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Collection, Mapping, MutableMapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Final

from cdk_triton.errors import LocalError
from cdk_triton_local.clock import Clock, Waits
from cdk_triton_local.endpoints import Container, Endpoint, EndpointHost, Shift, Variant
from cdk_triton_local.endpoints.async_host import async_of
from cdk_triton_local.endpoints.components_room import check_components
from cdk_triton_local.endpoints.data_capture import capture_of
from cdk_triton_local.endpoints.instance_changes import change_instances
from cdk_triton_local.endpoints.instance_pools import Placement, instance_types, model_names, place, rejection
from cdk_triton_local.endpoints.rejected_updates import (
    SageMakerError,
    reject_no_longer_asynchronous,
    reject_other_type_of_scaled,
    reject_steps_to_other_variants,
    reject_zero_instances,
)
from cdk_triton_local.endpoints.traffic import Alarms, RolledBackError, check_alarms, shift
from cdk_triton_local.endpoints.variant_capacities import Summary, initial_summaries, retained_summaries

__all__ = ["EndpointOperations"]

_SHADOWS: Final = "shadow_production_variants"
_ASYNCHRONOUS: Final = "async_inference_config"
_COUNT: Final = "DesiredInstanceCount"
_SETTLED: Final = ("InService", "Failed")

_FORGOTTEN_BY_MOTO: Final = {
    "EnableNetworkIsolation": "enable_network_isolation",
    "ExecutionRoleArn": "execution_role_arn",
    "MetricsConfig": "metrics_config",
    "ShadowProductionVariants": _SHADOWS,
    "VpcConfig": "vpc_config",
}
"""Members of CreateEndpointConfig, and the attributes from which moto makes DescribeEndpointConfig's answer."""


@dataclass(frozen=True)
class _Wanted:
    endpoint: Endpoint
    summaries: list[Summary]
    shadow_summaries: list[Summary]
    deployment: Mapping[str, Any] | None
    types: Mapping[str, str]
    placements: Mapping[str, Placement]


class EndpointOperations:
    """CreateEndpointConfig, CreateEndpoint, UpdateEndpoint, UpdateEndpointWeightsAndCapacities and DeleteEndpoint.

    Args:
        host: runs the servers.
        client: a boto3 SageMaker client of the local AWS, for models and configurations.
        endpoints: moto's endpoints by name; their status is changed here, and those that were deleted are removed.
        configurations: moto's endpoint configurations by name; members that moto does not keep are added here.
        scaled: names the variants of an endpoint that are scalable targets.
        capacity: returns how many instances of a type are free; None means no limit.
        alarms: reads the states of alarms with a role: the role's ARN and the names of the alarms.
        clock: the clock of updates.
        announce: called with moto's endpoint when its status has changed.
        log: called with one line per endpoint status.
        instances: surrounds a deployment of an endpoint; is entered when the endpoint has its instances.
    """

    def __init__(
        self,
        host: EndpointHost,
        client: Any,
        endpoints: Callable[[], MutableMapping[str, Any]],
        configurations: Callable[[], Mapping[str, Any]],
        scaled: Callable[[str], Collection[str]],
        capacity: Callable[[str], int | None],
        alarms: Callable[[str, Collection[str]], Mapping[str, str]],
        clock: Clock,
        announce: Callable[[Any], None],
        log: Callable[[str], None],
        instances: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._host = host
        self._client = client
        self._endpoints = endpoints
        self._configurations = configurations
        self._scaled = scaled
        self.free_instances = capacity
        self._alarms = alarms
        self._clock = clock
        self._announce = announce
        self._log = log
        self._instances = instances
        self._lock = threading.Lock()

    def before_configure(self, request: Mapping[str, Any]) -> Callable[[], None]:
        """Check a CreateEndpointConfig; return a function to call when moto has carried it out.

        Raises:
            SageMakerError: SageMaker rejects such a shadow or such instance pools.
        """
        if (fault := check_components(request)) is not None:
            raise SageMakerError(fault)
        shadows, production = request.get("ShadowProductionVariants") or [], request.get("ProductionVariants") or []
        if shadows and (len(shadows), len(production)) != (1, 1):
            raise SageMakerError(
                "An endpoint configuration with ShadowProductionVariants takes one production variant and one shadow "
                f"variant, but this configuration has {len(production)} and {len(shadows)}."
            )
        if shadows and any(map(self._is_multi_model, (*production, *shadows))):
            raise SageMakerError("Shadow variants are not supported for multi-model endpoints.")
        for variant in (*production, *shadows):
            if (reason := rejection(variant)) is not None:
                raise SageMakerError(reason)
            if "InstancePools" in variant and self._is_multi_model(variant):
                raise SageMakerError("InstancePools are not supported for multi-model endpoints.")

        def configured() -> None:
            configuration = self._configurations()[request["EndpointConfigName"]]
            for member, attribute in _FORGOTTEN_BY_MOTO.items():
                if member in request:
                    setattr(configuration, attribute, request[member])

        return configured

    def before_create(self, request: Mapping[str, Any]) -> Callable[[], None]:
        """Check a CreateEndpoint; return a function that starts the servers, to call when moto has carried it out.

        Raises:
            SageMakerError: the endpoint exists, or its configuration cannot be served here.
        """
        name = request["EndpointName"]
        if name in self._endpoints():
            raise SageMakerError(f'Cannot create already existing endpoint "{self._endpoints()[name].arn}".')
        wanted = self._wanted(request)
        return lambda: self._start(wanted, "Creating")

    def delete(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """DeleteEndpoint: the endpoint is `Deleting` until its servers have ended, and then gone.

        SageMaker rejects the deletion of a busy endpoint with this sentence. AWS's own client waits if an error begins
        with it (`DeleteEndpointInProgressMessagePrefix` in controllers/sdkutil/clientwrapper/sagemaker_client.go of
        aws/amazon-sagemaker-operator-for-k8s, 828e611).

        Raises:
            SageMakerError: there is no such endpoint, or it is busy.
        """
        endpoint = self._existing(request)
        with self._lock:
            if endpoint.endpoint_status not in _SETTLED:
                raise SageMakerError(f'Cannot update in-progress endpoint "{endpoint.arn}".')
            self._set_status(endpoint, "Deleting")
        name = endpoint.endpoint_name

        def remove() -> None:
            try:
                self._host.remove(name)
            except Exception as error:
                self._set_status(endpoint, "Failed", str(error) or type(error).__name__)
            else:
                self._endpoints().pop(name, None)
                self._log(f"endpoint {name}: deleted")

        threading.Thread(target=remove, name=f"endpoint-{name}", daemon=True).start()
        return {}

    def update(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """UpdateEndpoint.

        Raises:
            SageMakerError: there is no such endpoint, it is busy, its configuration cannot be served here, it changes
                the instance type of a scaled variant, makes an asynchronous endpoint a real-time one, or has other
                variants and is to be reached step by step.
        """
        endpoint = self._existing(request)
        wanted = self._wanted(request, endpoint)
        was_asynchronous = getattr(endpoint, _ASYNCHRONOUS, None) is not None
        reject_no_longer_asynchronous(wanted.endpoint, was_asynchronous=was_asynchronous)
        variants = [each["VariantName"] for each in endpoint.production_variants]
        reject_steps_to_other_variants(wanted.endpoint, wanted.deployment or {}, variants)
        if scaled := self._scaled(wanted.endpoint.name):
            reject_other_type_of_scaled(wanted.types, scaled, self._configuration_of(endpoint))
        with self._lock:
            self._reject_busy(endpoint)
            self._start(wanted, "Updating")
        return {"EndpointArn": endpoint.arn}

    def adjust(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """UpdateEndpointWeightsAndCapacities.

        Raises:
            SageMakerError: there is no such endpoint or variant, the endpoint is busy, or a real-time variant would
                have no instance.
        """
        endpoint = self._existing(request)
        asked = request["DesiredWeightsAndCapacities"]
        with self._lock:
            self._reject_busy(endpoint)
            shadows = getattr(endpoint, _SHADOWS, None) or []
            known = {summary["VariantName"] for summary in (*endpoint.production_variants, *shadows)}
            if unknown := [each["VariantName"] for each in asked if each["VariantName"] not in known]:
                raise SageMakerError(
                    f'The variant name(s) "{", ".join(unknown)}" is/are not present within endpoint configuration '
                    f'"{endpoint.endpoint_config_name}".'
                )
            counts = {each["VariantName"]: each.get("DesiredInstanceCount") for each in asked}
            if 0 in counts.values():
                reject_zero_instances(counts, self._configuration_of(endpoint))
            endpoint.production_variants = retained_summaries(endpoint.production_variants, asked, [_COUNT])
            setattr(endpoint, _SHADOWS, retained_summaries(shadows, asked, [_COUNT]) or None)
            weights = {each["VariantName"]: each["DesiredWeight"] for each in asked if "DesiredWeight" in each}
            self._host.set_weights(endpoint.endpoint_name, weights)
            summaries = (*endpoint.production_variants, *(getattr(endpoint, _SHADOWS, None) or ()))
            change_instances(self._clock, endpoint, summaries, {name: n for name, n in counts.items() if n is not None})
        self._log(f"endpoint {endpoint.endpoint_name}: weights and capacities set")
        return {"EndpointArn": endpoint.arn}

    def _existing(self, request: Mapping[str, Any]) -> Any:
        name = request["EndpointName"]
        if name not in self._endpoints():
            raise SageMakerError(f'Could not find endpoint "{name}".')
        return self._endpoints()[name]

    def _configuration_of(self, endpoint: Any) -> Mapping[str, Any]:
        """The configuration in service."""
        found: Mapping[str, Any] = self._client.describe_endpoint_config(
            EndpointConfigName=endpoint.endpoint_config_name
        )
        return found

    @staticmethod
    def _reject_busy(endpoint: Any) -> None:
        if endpoint.endpoint_status != "InService":
            raise SageMakerError(f'Cannot update in-progress endpoint "{endpoint.arn}".')

    def _start(self, wanted: _Wanted, status: str) -> None:
        name = wanted.endpoint.name
        endpoint = self._endpoints()[name]
        if status == "Creating":
            self._describe(endpoint, wanted)
        self._set_status(endpoint, status)

        def deploy() -> None:
            try:
                self._check_capacity(wanted)
                if status == "Updating":
                    check_alarms(wanted.deployment or {}, self._alarms_of(wanted))
                with self._instances():
                    self._host.deploy(wanted.endpoint, self._shift(endpoint, wanted))
            except Exception as error:
                # Whatever a host raises is the endpoint's failure, and must not leave it Creating.
                settled = "Failed" if status == "Creating" else "InService"
                self._set_status(endpoint, settled, str(error) or type(error).__name__)
            else:
                self._describe(endpoint, wanted)
                self._set_status(endpoint, "InService")

        threading.Thread(target=deploy, name=f"endpoint-{name}", daemon=True).start()

    def _set_status(self, endpoint: Any, status: str, reason: str | None = None) -> None:
        endpoint.failure_reason = reason
        endpoint.endpoint_status = status
        self._log(f"endpoint {endpoint.endpoint_name}: {status}{f': {reason}' if reason else ''}")
        try:
            self._announce(endpoint)
        except Exception as error:  # a target that cannot be reached does not change the endpoint
            self._log(f"endpoint {endpoint.endpoint_name}: no event was sent: {error}")

    def _alarms_of(self, wanted: _Wanted) -> Alarms:
        """Reads alarms with the role of the first variant's model.

        "Ensure that your IAM execution role has permission to perform the cloudwatch:DescribeAlarms action on the
        auto-rollback alarms you specify" ("Auto-Rollback Configuration and Monitoring").
        """
        role = next((variant.container.role for variant in wanted.endpoint.variants), "")
        return functools.partial(self._alarms, role)

    def _shift(self, endpoint: Any, wanted: _Wanted) -> Shift:
        instances = sum(int(summary[_COUNT]) for summary in wanted.summaries)

        def steps(move: Callable[[float], None]) -> Waits:
            try:
                yield from shift(wanted.deployment or {}, instances, move, self._alarms_of(wanted))
            except RolledBackError:
                move(0)
                self._set_status(endpoint, "RollingBack")
                raise

        return lambda move: self._clock.wait_for(steps(move))

    def _check_capacity(self, wanted: _Wanted) -> None:
        """Also logs which pool of a variant serves."""
        for placement in wanted.placements.values():
            if placement.shortage is not None:
                raise LocalError(placement.shortage)
        for variant in (*wanted.endpoint.variants, *wanted.endpoint.shadows):
            placement = wanted.placements[variant.name]
            if placement.pools is not None:
                self._log(
                    f"endpoint {wanted.endpoint.name}: variant {variant.name} runs on {placement.instance_type} with "
                    f"{variant.container.model_data_url} {placement.reason}".rstrip()
                )

    @staticmethod
    def _describe(endpoint: Any, wanted: _Wanted) -> None:
        endpoint.endpoint_config_name = wanted.endpoint.config_name
        endpoint.production_variants = wanted.summaries
        setattr(endpoint, _SHADOWS, wanted.shadow_summaries or None)
        endpoint.last_deployment_config = wanted.deployment
        setattr(endpoint, _ASYNCHRONOUS, wanted.endpoint.asynchronous)

    def _wanted(self, request: Mapping[str, Any], existing: Any = None) -> _Wanted:
        config_name = request["EndpointConfigName"].rsplit("/", 1)[-1]
        try:
            configuration = self._client.describe_endpoint_config(EndpointConfigName=config_name)
        except self._client.exceptions.ClientError as error:
            raise SageMakerError(f'Could not find endpoint configuration "{config_name}".') from error
        variants = {"production_variants": configuration["ProductionVariants"]}
        variants[_SHADOWS] = configuration.get("ShadowProductionVariants") or []
        summaries = {attribute: initial_summaries(each) for attribute, each in variants.items()}
        deployment = request.get("DeploymentConfig")
        if existing is not None and request.get("RetainAllVariantProperties"):
            excluded = {each["VariantPropertyType"] for each in request.get("ExcludeRetainedVariantProperties") or []}
            for attribute, fresh in summaries.items():
                summaries[attribute] = retained_summaries(fresh, getattr(existing, attribute, None) or [], excluded)
        if existing is not None and request.get("RetainDeploymentConfig"):
            deployment = getattr(existing, "last_deployment_config", None)
        placements = dict[str, Placement]()
        for attribute, each in variants.items():
            for variant, summary in zip(each, summaries[attribute], strict=True):
                placements[variant["VariantName"]] = placed = place(variant, summary[_COUNT], self.free_instances)
                if placed.pools is not None:
                    summary["InstancePools"] = placed.pools
        served = {
            attribute: tuple(
                self._variant(variant, float(summary["CurrentWeight"]), placements[variant["VariantName"]])
                for variant, summary in zip(each, summaries[attribute], strict=True)
                if "ModelName" in variant or "ServerlessConfig" in variant  # the others host inference components
            )
            for attribute, each in variants.items()
        }
        endpoint = Endpoint(
            request["EndpointName"],
            config_name,
            served["production_variants"],
            served[_SHADOWS],
            capture_of(configuration),
            async_of(configuration),
        )
        types = {each["VariantName"]: instance_types(each) for each in configuration["ProductionVariants"]}
        return _Wanted(endpoint, summaries["production_variants"], summaries[_SHADOWS], deployment, types, placements)

    def _is_multi_model(self, variant: Mapping[str, Any]) -> bool:
        return any(self.container_of(name).mode == "MultiModel" for name in model_names(variant))

    def _variant(self, variant: Mapping[str, Any], weight: float, placement: Placement) -> Variant:
        if "ModelName" not in variant or "ServerlessConfig" in variant:
            raise SageMakerError(
                f"variant {variant['VariantName']!r} is serverless or has no model; the local AWS serves variants of "
                "one model on instances"
            )
        return Variant(
            name=variant["VariantName"],
            weight=weight,
            instance_type=placement.instance_type,
            container=self.container_of(placement.model_name),
            in_pool=placement.pools is not None,
        )

    def container_of(self, model: str) -> Container:
        """The container of a model, by its name or ARN.

        Raises:
            SageMakerError: there is no such model, or it cannot be served here.
        """
        name = model.rsplit("/", 1)[-1]
        try:
            found = self._client.describe_model(ModelName=name)
        except self._client.exceptions.ClientError as error:
            raise SageMakerError(f'Could not find model "{name}".') from error
        return _container(found)


def _container(model: Mapping[str, Any]) -> Container:
    container = model.get("PrimaryContainer") or {}
    files = container.get("ModelDataSource", {}).get("S3DataSource", {})
    url = container.get("ModelDataUrl") or files.get("S3Uri")
    if not container.get("Image") or not url:
        raise SageMakerError(
            f"model {model['ModelName']!r} has no PrimaryContainer with Image and ModelDataUrl or ModelDataSource, "
            "which is what the local AWS serves"
        )
    if files and (files["S3DataType"], files["CompressionType"]) != ("S3Prefix", "None"):
        raise SageMakerError(
            f"the ModelDataSource of model {model['ModelName']!r} is a {files['S3DataType']} with the compression "
            f"{files['CompressionType']}; the local AWS serves an S3Prefix with None, or a ModelDataUrl"
        )
    cache = container.get("MultiModelConfig", {}).get("ModelCacheSetting", "Enabled")
    return Container(
        image=container["Image"],
        mode=container.get("Mode", "SingleModel"),
        model_data_url=url,
        environment={key: str(value) for key, value in container.get("Environment", {}).items()},
        model_cache=cache != "Disabled",
        compressed=not files,
        role=model.get("ExecutionRoleArn", ""),
    )
