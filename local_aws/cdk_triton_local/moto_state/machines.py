"""State machines with a map, which moto's interpreter runs; `cdk_triton_local.services` runs the others.

moto runs either all machines or none. Here it runs those with a map, because it would wait as long as in the definition
of a waiter. The interpreter calls Lambda and S3 through clients that lead to moto's own server, so it gets clients of
the local AWS instead.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from cdk_triton_local.moto_state.patching import replace_method
from cdk_triton_local.services import LONGEST_PAUSE, has_map

__all__ = ["correct_machines", "let_machines_use"]

_pauses = SimpleNamespace(sleep=None)
"""How the machines of the local AWS that runs wait; see `let_machines_use`."""


def correct_machines() -> None:
    """Make moto run only state machines with a map.

    Raises:
        LocalError: moto does not have the method that is replaced.
    """
    from moto.core.config import default_user_config
    from moto.stepfunctions.parser.asl.component.state.wait.wait_function.wait_function import WaitFunction
    from moto.stepfunctions.parser.asl.eval.environment import Environment
    from moto.stepfunctions.parser.asl.parse import preprocessor
    from moto.stepfunctions.parser.models import StepFunctionsParserBackend

    default_user_config["stepfunctions"] = {"execute_state_machine": True}
    replace_method(StepFunctionsParserBackend, "start_execution", _start_execution)
    replace_method(StepFunctionsParserBackend, "_validate_definition", _validate_definition)
    replace_method(StepFunctionsParserBackend, "_get_executions", _get_executions)
    replace_method(StepFunctionsParserBackend, "list_map_runs", _list_map_runs)
    replace_method(WaitFunction, "_wait_interval", _wait_interval)
    replace_method(Environment, "set_error", _set_error)
    # For each execution, it warns of `ToleratedFailureCount`, which a publisher sets so high that it changes nothing.
    logging.getLogger(preprocessor.__name__).setLevel(logging.ERROR)


def let_machines_use(client: Callable[[str, str], Any], sleep: Callable[..., None]) -> Callable[[], None]:
    """Give moto's interpreter the clients with which it calls other services, and its pauses.

    Args:
        client: makes a boto3 client of a service that calls as a principal, the role of a machine.
        sleep: waits for some seconds, here at most for some others.

    Returns:
        A function that removes them again.
    """
    from moto.stepfunctions.parser.asl.component.common.retry import retrier_decl as retrier
    from moto.stepfunctions.parser.asl.component.state.exec.state_map.item_reader.eval import (
        resource_eval_s3 as reader,
    )
    from moto.stepfunctions.parser.asl.component.state.exec.state_map.result_writer.resource_eval import (
        resource_eval_s3 as writer,
    )
    from moto.stepfunctions.parser.asl.component.state.exec.state_task import lambda_eval_utils as task

    def boto_client_for(service: str, *, state_credentials: Any, **_: Any) -> Any:
        made = client(service, state_credentials.role_arn)
        return _LambdaClient(made) if service == "lambda" else made

    names = [vars(module) for module in (reader, writer, task)]
    originals = [each["boto_client_for"] for each in names]
    for each in names:
        each["boto_client_for"] = boto_client_for
    clock, vars(retrier)["time"] = vars(retrier)["time"], SimpleNamespace(sleep=sleep)
    before, _pauses.sleep = _pauses.sleep, sleep

    def take_back() -> None:
        _pauses.sleep = before
        vars(retrier)["time"] = clock
        for each, original in zip(names, originals, strict=True):
            each["boto_client_for"] = original

    return take_back


class _LambdaClient:
    """An error of Lambda gets the name that Step Functions gives to it."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def invoke(self, **parameters: Any) -> Any:
        from botocore.exceptions import ClientError
        from moto.stepfunctions.parser.asl.component.state.exec.state_task.lambda_eval_utils import (
            LambdaFunctionErrorException,
        )

        try:
            return self._client.invoke(**parameters)
        except ClientError as error:
            code = error.response["Error"]["Code"]
            payload = {"errorType": f"Lambda.{code}", "errorMessage": str(error)}
            raise LambdaFunctionErrorException(code, json.dumps(payload)) from error


def _validate_definition(original: Any) -> Any:
    """The CDK's waiters, which moto does not run, would be invalid for it."""

    def validate(definition: str) -> None:
        if has_map(definition):
            original(definition)

    return staticmethod(validate)


def _wait_interval(_: Any) -> Any:
    """Moto waits as long as in the definition, which for a build is longer than the build takes here."""

    def wait_interval(*_: Any, wait_seconds: int, **__: Any) -> None:
        _pauses.sleep(wait_seconds, LONGEST_PAUSE)

    return wait_interval


def _set_error(original: Any) -> Any:
    """StopExecution: moto takes an aborted execution for a failed one if a function that still runs fails."""
    from moto.stepfunctions.parser.asl.eval.program_state import ProgramStopped

    def set_error(env: Any, error: Any) -> None:
        if not isinstance(env.program_state(), ProgramStopped):
            original(env, error)

    return set_error


def _get_executions(original: Any) -> Any:
    """Moto looks for a map run in all executions, also in those that it does not run, or not yet."""

    def get_executions(backend: Any, *arguments: Any) -> Any:
        return [each for each in original(backend, *arguments) if _is_run(each)]

    return get_executions


def _list_map_runs(original: Any) -> Any:
    """Moto fails for an execution that it has accepted and that waits to be run."""

    def list_map_runs(backend: Any, execution_arn: str) -> Any:
        is_run = _is_run(backend.describe_execution(execution_arn))
        return original(backend, execution_arn) if is_run else {"mapRuns": []}

    return list_map_runs


def _is_run(execution: Any) -> bool:
    return getattr(getattr(execution, "exec_worker", None), "env", None) is not None


def _start_execution(original: Any) -> Any:
    from moto.stepfunctions.models import StepFunctionBackend

    def start_execution(
        backend: Any, state_machine_arn: str, name: str | None = None, *arguments: Any, **named: Any
    ) -> Any:
        """StartExecution: a name is optional, and moto calls each execution without one `None`."""
        machine = backend.describe_state_machine(state_machine_arn)
        start = original if has_map(machine.definition) else StepFunctionBackend.start_execution
        return start(backend, state_machine_arn, name or str(uuid.uuid4()), *arguments, **named)

    return start_execution
