"""The published form: pooling and normalisation in torch, one request after the other."""

from __future__ import annotations

from typing import Any

import torch
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """TOKEN_EMBEDS_POST, hidden states, and ATTENTION_POST, mask -> SENT_EMBED."""

    def execute(self, requests: list[Any]) -> list[Any]:
        """Pools."""
        responses = []
        for request in requests:
            states = torch.tensor(pb_utils.get_input_tensor_by_name(request, "TOKEN_EMBEDS_POST").as_numpy())
            mask = torch.tensor(pb_utils.get_input_tensor_by_name(request, "ATTENTION_POST").as_numpy())
            expanded = mask.unsqueeze(-1).expand(states.size()).float()
            pooled = torch.sum(states * expanded, 1) / torch.clamp(expanded.sum(1), min=1e-9)
            embeddings = torch.nn.functional.normalize(pooled, p=2, dim=1).cpu().detach().numpy()
            responses.append(pb_utils.InferenceResponse(output_tensors=[pb_utils.Tensor("SENT_EMBED", embeddings)]))
        return responses
