"""The network of the generated ensemble: the numbers of a text's letters become a score for each language.

It is a naive Bayes classifier. A language has a probability for each letter, and the score of a text is the product of
the probabilities of its letters, divided by the sum over all languages. So the weights are logarithms of frequencies.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["LANGUAGES", "network"]

# Percent of a to z in texts of each language, after https://en.wikipedia.org/wiki/Letter_frequency; letters with an
# accent are not among them.
_FREQUENCIES: Mapping[str, str] = {
    "English": "8.167 1.492 2.782 4.253 12.702 2.228 2.015 6.094 6.966 0.153 0.772 4.025 2.406 6.749 7.507 1.929 0.095 "
    "5.987 6.327 9.056 2.758 0.978 2.360 0.150 1.974 0.074",
    "French": "7.636 0.901 3.260 3.669 14.715 1.066 0.866 0.737 7.529 0.613 0.074 5.456 2.968 7.095 5.796 2.521 1.362 "
    "6.693 7.948 7.244 6.311 1.838 0.049 0.427 0.128 0.326",
    "German": "6.516 1.886 2.732 5.076 16.396 1.656 3.009 4.577 6.550 0.268 1.417 3.437 2.534 9.776 2.594 0.670 0.018 "
    "7.003 7.270 6.154 4.166 0.846 1.921 0.034 0.039 1.134",
    "Spanish": "11.525 2.215 4.019 5.010 12.181 0.692 1.768 0.703 6.247 0.493 0.011 4.967 3.157 6.712 8.683 2.510 "
    "0.877 6.871 7.977 4.632 2.927 1.138 0.017 0.215 1.008 0.467",
}

LANGUAGES = tuple(_FREQUENCIES)
"""The languages, in the order of the scores."""

_OPSET, _IR_VERSION = 17, 8  # every release of the library's table that reads ONNX files reads these


def network() -> bytes:
    """The network as an ONNX file: `letters` [batch, 26] to `scores` [batch, 4]."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    percent = np.array([[float(each) for each in row.split()] for row in _FREQUENCIES.values()])
    logarithms = np.log(percent / percent.sum(axis=1, keepdims=True)).T.astype(np.float32)
    nodes = [
        helper.make_node("MatMul", ["letters", "logarithms"], ["likelihoods"]),
        helper.make_node("Softmax", ["likelihoods"], ["scores"], axis=1),
    ]
    letters = helper.make_tensor_value_info("letters", TensorProto.FLOAT, ["batch", logarithms.shape[0]])
    scores = helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", logarithms.shape[1]])
    weights = [numpy_helper.from_array(logarithms, "logarithms")]
    graph = helper.make_graph(nodes, "language", [letters], [scores], weights)
    opsets = [helper.make_opsetid("", _OPSET)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION).SerializeToString())
