"""The network of the generated ensemble: the numbers of a text's letters become a score for each language.

It is a naive Bayes classifier. A language has a probability for each letter, and the score of a text is the product of
the probabilities of its letters, divided by the sum over all languages. So the weights are logarithms of frequencies.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["LANGUAGES", "network"]

# Percent of a to z in texts of each language. English: Robert Lewand, "Cryptological Mathematics", 2000, as quoted in
# Wikipedia's article "Letter frequency". The others: the table "Relative frequencies of letters in other languages" of
# the same article, as copied by liquisearch.com (read on 2026-11-25); letters with an accent are not among them.
_FREQUENCIES: Mapping[str, str] = {
    "English": "8.167 1.492 2.782 4.253 12.702 2.228 2.015 6.094 6.966 0.153 0.772 4.025 2.406 6.749 7.507 1.929 0.095 "
    "5.987 6.327 9.056 2.758 0.978 2.360 0.150 1.974 0.074",
    "French": "7.636 0.901 3.260 3.669 14.715 1.066 0.866 0.737 7.529 0.545 0.049 5.456 2.968 7.095 5.378 3.021 1.362 "
    "6.553 7.948 7.244 6.311 1.628 0.114 0.387 0.308 0.136",
    "German": "6.51 1.89 3.06 5.08 17.40 1.66 3.01 4.76 7.55 0.27 1.21 3.44 2.53 9.78 2.51 0.79 0.02 "
    "7.00 7.27 6.15 4.35 0.67 1.89 0.03 0.04 1.13",
    "Spanish": "12.53 1.42 4.68 5.86 13.68 0.69 1.01 0.70 6.25 0.44 0.01 4.97 3.15 6.71 8.68 2.51 0.88 "
    "6.87 7.98 4.63 3.93 0.90 0.02 0.22 0.90 0.52",
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
