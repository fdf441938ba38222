"""SageMaker's endpoint operations: state in moto, servers in an `EndpointHost`.

moto answers CreateEndpoint with an endpoint that is in service at once and lacks UpdateEndpoint. Here an endpoint is
`Creating` or `Updating` until its host says that it answers, and `FailureReason` says why it does not. A failed update
leaves the endpoint in service with its old configuration, as SageMaker's blue/green deployment does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from cdk_triton.local.endpoints import Container, Endpoint, EndpointHost, Variant

__all__ = ["EndpointOperations", "SageMakerError"]


class SageMakerError(Exception):
    """A ValidationException of SageMaker's API."""


class EndpointOperations:
    """CreateEndpoint, UpdateEndpoint and DeleteEndpoint.

    Args:
        host: runs the servers.
        client: a boto3 SageMaker client of the local AWS, for models and configurations.
        endpoints: moto's endpoints by name; their status is changed here.
        log: called with one line per endpoint status.
    """

    def __init__(
        self,
        host: EndpointHost,
        client: Any,
        endpoints: Callable[[], Mapping[str, Any]],
        log: Callable[[str], None],
    ) -> None:
        self._host = host
        self._client = client
        self._endpoints = endpoints
        self._log = log
        self._lock = threading.Lock()

    def before_create(self, request: Mapping[str, Any]) -> Endpoint:
        """Check a CreateEndpoint and say what it asks for.

        Raises:
            SageMakerError: the endpoint exists, or its configuration cannot be served here.
        """
        name = request["EndpointName"]
        if name in self._endpoints():
            raise SageMakerError(f'Cannot create already existing endpoint "{self._endpoints()[name].arn}".')
        return self._wanted(name, request["EndpointConfigName"])

    def created(self, wanted: Endpoint) -> None:
        """Start the servers of an endpoint that moto has just created."""
        self._start(wanted, "Creating")

    def update(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """UpdateEndpoint.

        Raises:
            SageMakerError: there is no such endpoint, it is busy, or its configuration cannot be served here.
        """
        name = request["EndpointName"]
        endpoint = self._endpoints().get(name)
        if endpoint is None:
            raise SageMakerError(f'Could not find endpoint "{name}".')
        wanted = self._wanted(name, request["EndpointConfigName"])
        with self._lock:
            if endpoint.endpoint_status != "InService":
                raise SageMakerError(f'Cannot update in-progress endpoint "{endpoint.arn}".')
            self._start(wanted, "Updating")
        return {"EndpointArn": endpoint.arn}

    def deleted(self, name: str) -> None:
        """Stop the servers of an endpoint that moto has just deleted."""
        self._host.remove(name)
        self._log(f"endpoint {name}: deleted")

    def _start(self, wanted: Endpoint, status: str) -> None:
        endpoint = self._endpoints()[wanted.name]
        endpoint.endpoint_status = status
        self._log(f"endpoint {wanted.name}: {status}")

        def deploy() -> None:
            try:
                self._host.deploy(wanted)
            except Exception as error:
                # Whatever a host raises is the endpoint's failure, and must not leave it Creating.
                endpoint.failure_reason = str(error) or type(error).__name__
                endpoint.endpoint_status = "Failed" if status == "Creating" else "InService"
            else:
                endpoint.failure_reason = None
                endpoint.endpoint_config_name = wanted.config_name
                configuration = self._client.describe_endpoint_config(EndpointConfigName=wanted.config_name)
                endpoint.production_variants = endpoint._process_production_variants(
                    configuration["ProductionVariants"]
                )
                endpoint.endpoint_status = "InService"
            reason = f": {endpoint.failure_reason}" if endpoint.failure_reason else ""
            self._log(f"endpoint {wanted.name}: {endpoint.endpoint_status}{reason}")

        threading.Thread(target=deploy, name=f"endpoint-{wanted.name}", daemon=True).start()

    def _wanted(self, name: str, config_name: str) -> Endpoint:
        config_name = config_name.rsplit("/", 1)[-1]
        try:
            configuration = self._client.describe_endpoint_config(EndpointConfigName=config_name)
        except self._client.exceptions.ClientError as error:
            raise SageMakerError(f'Could not find endpoint configuration "{config_name}".') from error
        return Endpoint(name, config_name, tuple(map(self._variant, configuration["ProductionVariants"])))

    def _variant(self, variant: Mapping[str, Any]) -> Variant:
        if "ModelName" not in variant or "ServerlessConfig" in variant:
            raise SageMakerError(
                f"variant {variant['VariantName']!r} is serverless or has no model; the local AWS serves variants of "
                "one model on instances"
            )
        model_name = variant["ModelName"].rsplit("/", 1)[-1]
        try:
            model = self._client.describe_model(ModelName=model_name)
        except self._client.exceptions.ClientError as error:
            raise SageMakerError(f'Could not find model "{model_name}".') from error
        return Variant(
            name=variant["VariantName"],
            weight=float(variant.get("InitialVariantWeight", 1.0)),
            instance_type=variant.get("InstanceType", ""),
            container=_container(model),
        )


def _container(model: Mapping[str, Any]) -> Container:
    container = model.get("PrimaryContainer") or {}
    url = container.get("ModelDataUrl")
    if not container.get("Image") or not url:
        raise SageMakerError(
            f"model {model['ModelName']!r} has no PrimaryContainer with Image and ModelDataUrl, which is what the "
            "local AWS serves"
        )
    cache = container.get("MultiModelConfig", {}).get("ModelCacheSetting", "Enabled")
    return Container(
        image=container["Image"],
        mode=container.get("Mode", "SingleModel"),
        model_data_url=url,
        environment={key: str(value) for key, value in container.get("Environment", {}).items()},
        model_cache=cache != "Disabled",
    )
