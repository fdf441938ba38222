"""`RepositoryClient`: an endpoint together with the repository that it serves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tritonclient.http import InferRequestedOutput

    from cdk_triton.client.aio import AsyncTritonClient
    from cdk_triton.client.contract import Contract
    from cdk_triton.client.endpoint import TritonClient
    from cdk_triton.client.many import Answer
    from cdk_triton.client.payload import InferenceResult

__all__ = ["AsyncRepositoryClient", "RepositoryClient"]


@dataclass(frozen=True)
class RepositoryClient:
    """Checks requests against a repository's `config.pbtxt` before the client sends them.

    `TritonClient.for_repository` returns a `RepositoryClient`.

    Attributes:
        client: the client that sends the requests.
        contract: the inputs and outputs of the model.
        target: the arguments of `infer` that name the model, such as `ensemble`.
    """

    client: TritonClient
    contract: Contract
    target: Mapping[str, Any]

    def infer(
        self,
        inputs: Mapping[str, Any],
        *,
        outputs: Iterable[str | InferRequestedOutput] | None = None,
        binary: bool = True,
        request_id: str = "",
        parameters: Mapping[str, str | int | bool] | None = None,
    ) -> InferenceResult:
        """Run one inference, as `TritonClient.infer` does.

        Args:
            inputs: a mapping from each input's name to an array of the type in `config.pbtxt`, or to numbers, text or
                lists. The client converts numbers, text and lists to such an array if the conversion loses nothing.
                Dimensions of 1 at the end may be omitted, and so may the batch dimension of a single row.
            outputs: as for `TritonClient.infer`.
            binary: as for `TritonClient.infer`.
            request_id: as for `TritonClient.infer`.
            parameters: as for `TritonClient.infer`.

        Raises:
            ConfigurationError: the model does not have an input or an output of that name, an input is missing, or the
                type or shape of an input differs from `config.pbtxt`; nothing was sent.
            InvocationError: as for `TritonClient.infer`, or an output has another type than in `config.pbtxt`.
        """
        wanted = _listed(outputs)
        self.contract.check_outputs(wanted)
        arrays = self.contract.complete(inputs)
        return self.contract.check(
            self.client.infer(
                arrays, outputs=wanted, binary=binary, request_id=request_id, parameters=parameters, **self.target
            )
        )

    def infer_many(
        self,
        requests: Iterable[Mapping[str, Any]],
        *,
        outputs: Iterable[str | InferRequestedOutput] | None = None,
        concurrency: int = 16,
        parameters: Mapping[str, str | int | bool] | None = None,
    ) -> list[Answer]:
        """Answer many requests, as `TritonClient.infer_many` does with the `max_batch_size` of `config.pbtxt`.

        Args:
            requests: the inputs of each request, as for `infer`.
            outputs: as for `infer`.
            concurrency: as for `TritonClient.infer_many`.
            parameters: as for `infer`.

        Raises:
            ConfigurationError: the model does not have an output of that name, or `concurrency` is not a whole number
                of at least 1.
        """
        wanted = _listed(outputs)
        self.contract.check_outputs(wanted)
        return self.client._infer_many(
            requests,
            self.contract.max_batch_size or 1,
            concurrency,
            self.contract.complete,
            self.contract.check,
            {"outputs": wanted, "parameters": parameters, **self.target},
        )


@dataclass(frozen=True)
class AsyncRepositoryClient:
    """Does the same as `RepositoryClient`, but with an `AsyncTritonClient`.

    `AsyncTritonClient.for_repository` returns an `AsyncRepositoryClient`.

    Attributes:
        client: the client that sends the requests.
        contract: the inputs and outputs of the model.
        target: the arguments of `infer` that name the model, such as `ensemble`.
    """

    client: AsyncTritonClient
    contract: Contract
    target: Mapping[str, Any]

    async def infer(
        self,
        inputs: Mapping[str, Any],
        *,
        outputs: Iterable[str | InferRequestedOutput] | None = None,
        binary: bool = True,
        request_id: str = "",
        parameters: Mapping[str, str | int | bool] | None = None,
    ) -> InferenceResult:
        """Run one inference, as `RepositoryClient.infer` does."""
        wanted = _listed(outputs)
        self.contract.check_outputs(wanted)
        arrays = self.contract.complete(inputs)
        return self.contract.check(
            await self.client.infer(
                arrays, outputs=wanted, binary=binary, request_id=request_id, parameters=parameters, **self.target
            )
        )

    async def infer_many(
        self,
        requests: Iterable[Mapping[str, Any]],
        *,
        outputs: Iterable[str | InferRequestedOutput] | None = None,
        concurrency: int = 64,
        parameters: Mapping[str, str | int | bool] | None = None,
    ) -> list[Answer]:
        """Answer many requests, as `RepositoryClient.infer_many` does."""
        wanted = _listed(outputs)
        self.contract.check_outputs(wanted)
        return await self.client._infer_many(
            requests,
            self.contract.max_batch_size or 1,
            concurrency,
            self.contract.complete,
            self.contract.check,
            {"outputs": wanted, "parameters": parameters, **self.target},
        )


def _listed(outputs: Iterable[str | InferRequestedOutput] | None) -> list[str | InferRequestedOutput] | None:
    if outputs is None:
        return None
    return [outputs] if isinstance(outputs, str) else list(outputs)
