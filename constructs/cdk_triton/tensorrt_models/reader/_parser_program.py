"""A program of its own: the messages of TensorRT's ONNX parser about a network and its optimisation profiles.

It reads a request from standard input and writes its answer to standard output, both JSON. TensorRT is native code that
prints what it likes and may end the process: the parent (`tensorrt.py`) is prepared for that.
"""

from __future__ import annotations

import json
import os
import re
import sys
from typing import Any

# `IBuilder::isNetworkSupported: Error Code 4: API Usage Error (<the reason>. In validate at /_src/…/network.cpp:4048)`
_REASON = re.compile(r"Error \((.+?)\.? In \S+ at \S+\)$", re.DOTALL)
# What follows from another error, or only says that there is no GPU.
_CONSEQUENCE = ("catchCudaError", "Parameter check failed", "no optimization profile has been defined")


def answer(request: Any, trt: Any) -> dict[str, Any]:
    """Parse `request["onnx"]` and try `request["profiles"]`: input → [minimum, optimum, maximum] each."""

    class Logger(trt.ILogger):  # type: ignore[misc] # the module is only known at run time
        def __init__(self) -> None:
            trt.ILogger.__init__(self)
            self.errors: list[str] = []

        def log(self, severity: Any, message: str) -> None:
            if severity <= trt.ILogger.Severity.ERROR:
                self.errors.append(message)

    logger = Logger()
    builder = trt.Builder(logger)
    network = builder.create_network(0)
    parser = trt.OnnxParser(network, logger)
    parsed = parser.parse_from_file(request["onnx"])
    faults = [parser.get_error(index) for index in range(parser.num_errors)]
    result: dict[str, Any] = {
        "version": trt.__version__,
        "faults": [[fault.node_operator(), fault.node_name(), fault.desc()] for fault in faults],
        "inputs": [],
        "outputs": [],
        "rejections": [],
    }
    if parsed:
        inputs = [network.get_input(index) for index in range(network.num_inputs)]
        outputs = [network.get_output(index) for index in range(network.num_outputs)]
        result["inputs"] = [[tensor.name, tensor.dtype.name, list(tensor.shape)] for tensor in inputs]
        result["outputs"] = [[tensor.name, tensor.dtype.name, list(tensor.shape)] for tensor in outputs]
        result["rejections"] = [_rejection(profile, trt, builder, network, logger) for profile in request["profiles"]]
    return result


def _rejection(shapes: dict[str, Any], trt: Any, builder: Any, network: Any, logger: Any) -> str:
    """Why TensorRT would not build the network for a profile; "" if it would."""
    logger.errors.clear()
    profile = builder.create_optimization_profile()
    config = builder.create_builder_config()
    for name, (minimum, optimum, maximum) in shapes.items():
        try:
            profile.set_shape(name, minimum, optimum, maximum)
        except (TypeError, ValueError) as error:
            return f"{name}: {error}"
    if config.add_optimization_profile(profile) >= 0 and builder.is_network_supported(network, config):
        return ""
    errors = [message for message in logger.errors if not any(part in message for part in _CONSEQUENCE)]
    if not errors:
        return "no reason given"
    match = _REASON.search(errors[0])
    return match[1] if match else errors[0]


def main() -> None:
    """Answer one request."""
    import tensorrt_rtx  # an extra; nobody but this program imports it

    request = json.load(sys.stdin)
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        os.dup2(2, 1)  # what native code prints is not part of the answer
        json.dump(answer(request, tensorrt_rtx), out)


if __name__ == "__main__":
    main()
