"""Reads and resets the state that moto keeps."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

from cdk_triton_local.lambdas import FunctionCode
from cdk_triton_local.moto_state.cloudwatch import new_metric_data
from cdk_triton_local.moto_state.corrections import correct_moto
from cdk_triton_local.moto_state.machines import let_machines_use
from cdk_triton_local.moto_state.networks import reached_services
from cdk_triton_local.moto_state.roles import role_statements
from cdk_triton_local.moto_state.scaling import ChangeInstances, components, scaled_variants, use_change
from cdk_triton_local.moto_state.scaling_targets import scalable_targets
from cdk_triton_local.process import conflicting_variables
from cdk_triton_local.services.metric_values import Datum
from cdk_triton_local.services.scaling import Target

__all__ = ["MotoState"]


class MotoState:
    """moto, empty and corrected.

    Args:
        region: the region whose state this is.
        account: the account of every request.
    """

    def __init__(self, region: str, account: str) -> None:
        from moto.core.config import default_user_config
        from moto.moto_server.werkzeug_app import create_backend_app

        from cdk_triton_local.moto_state.dispatch import Dispatcher

        self._region = region
        self._account = account
        self._users_iam = default_user_config["iam"]
        # Without it, attaching an AWS managed policy to a role fails; with it, a name that AWS does not have fails.
        default_user_config["iam"] = {"load_aws_managed_policies": True}
        with _without_users_profile():
            correct_moto()
        self.reset()
        self._application = Dispatcher(create_backend_app)

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answer a request as a WSGI application.

        Raises:
            NoServiceError: moto does not have the service.
        """
        environ["HTTP_X_MOTO_ACCOUNT_ID"] = self._account
        answer: Iterable[bytes] = self._application(environ, start_response)
        return answer

    def let_machines_use(self, client: Callable[[str, str], Any], sleep: Callable[[float], None]) -> Callable[[], None]:
        """Give the interpreter of state machines its clients, by service; returns a function that removes them."""
        return let_machines_use(client, sleep)

    def reset(self) -> None:
        """Forget everything."""
        from moto.core.base_backend import BackendDict
        from moto.core.model_instances import reset_model_data

        BackendDict.reset()
        reset_model_data()

    def close(self) -> None:
        """Forget everything, and switch off AWS's managed policies, all of which moto reads at each reset."""
        from moto.core.config import default_user_config

        default_user_config["iam"] = self._users_iam
        self.reset()

    def endpoints(self) -> MutableMapping[str, Any]:
        """SageMaker endpoints by name."""
        from moto.sagemaker.models import sagemaker_backends

        endpoints: MutableMapping[str, Any] = sagemaker_backends[self._account][self._region].endpoints
        return endpoints

    def components(self) -> MutableMapping[str, Any]:
        """SageMaker's inference components by name, which moto lacks."""
        return components(self._account, self._region)

    def instances(self, endpoint: str) -> int | None:
        """The instances that a SageMaker endpoint has at the moment; None if there is no such endpoint."""
        found = self.endpoints().get(endpoint)
        if found is None:
            return None
        return sum(int(each.get("CurrentInstanceCount", 0)) for each in found.production_variants)

    def endpoint_configurations(self) -> Mapping[str, Any]:
        """SageMaker endpoint configurations by name."""
        from moto.sagemaker.models import sagemaker_backends

        configurations: Mapping[str, Any] = sagemaker_backends[self._account][self._region].endpoint_configs
        return configurations

    def let_change_instances(self, change: ChangeInstances) -> None:
        """Set what changes the instance counts of variants; see `change_instances`."""
        use_change(self._account, self._region, change)

    def scalable_targets(self) -> Sequence[Target]:
        """The scalable targets of Application Auto Scaling."""
        return scalable_targets(self._account, self._region)

    def variant_instances(self, endpoint: str, variant: str) -> int:
        """The instances of a variant of a SageMaker endpoint at the moment."""
        found = self.endpoints().get(endpoint)
        variants = [] if found is None else found.production_variants
        return sum(int(each.get("CurrentInstanceCount", 0)) for each in variants if each["VariantName"] == variant)

    def new_metric_data(self, oldest: float) -> Sequence[Datum]:
        """What CloudWatch's PutMetricData has published since the last call; older data than `oldest` are forgotten."""
        return new_metric_data(self._account, self._region, oldest)

    def matches(self, pattern: str, event: Mapping[str, Any]) -> bool:
        """Whether an event pattern of EventBridge matches an event."""
        from moto.events.models import EventPattern

        found: bool = EventPattern(None, json.loads(pattern or "{}")).matches_event(cast(Any, event))
        return bool(pattern) and found

    def scaled_variants(self, endpoint: str) -> frozenset[str]:
        """The variants of a SageMaker endpoint that are scalable targets."""
        return scaled_variants(self._account, self._region, endpoint)

    def issued_secret(self, key: str) -> str | None:
        """The secret of an access key that IAM or STS has issued, or None."""
        from moto.iam.models import iam_backends

        for partitions in list(iam_backends.values()):
            for backend in list(partitions.values()):
                if key in backend.access_keys:
                    return str(backend.access_keys[key].secret_access_key)
        return None

    def role_statements(self, arn: str) -> list[Mapping[str, Any]]:
        """The statements of all policies of a role."""
        return role_statements(self._account, self._region, arn)

    def reached_services(self, subnets: Sequence[str]) -> frozenset[str] | None:
        """The services that functions in some subnets reach; None for all."""
        return reached_services(self._account, self._region, subnets)

    def function(self, name: str) -> FunctionCode | None:
        """A Lambda function as it is deployed now."""
        from moto.awslambda.exceptions import UnknownFunctionException
        from moto.awslambda.models import lambda_backends

        try:
            function = lambda_backends[self._account][self._region].get_function(name)
        except UnknownFunctionException:
            return None
        return FunctionCode(
            name=function.function_name,
            arn=function.function_arn,
            role=function.role,
            runtime=function.run_time or "",
            handler=function.handler or "",
            timeout=float(function.timeout),
            environment=dict(function.environment_vars),
            code=function.code_bytes,
            subnets=tuple((function.vpc_config or {}).get("SubnetIds", ())),
        )


@contextmanager
def _without_users_profile() -> Iterator[None]:
    """Take the variables that lead to the user's own AWS out of the process for a while.

    moto gets the regions from boto3 while some of its modules are imported, and boto3 fails at a profile that it cannot
    find.
    """
    kept = {name: os.environ.pop(name) for name in conflicting_variables(os.environ)}
    try:
        yield
    finally:
        os.environ.update(kept)
