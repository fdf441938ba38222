"""A repository without a finding: preprocess → bert, and the ensemble that runs both."""

from __future__ import annotations

from collections.abc import Mapping

PREPROCESS = """
name: "preprocess"
backend: "python"
max_batch_size: 8
input { name: "TEXT" data_type: TYPE_STRING dims: 1 }
output { name: "token_ids" data_type: TYPE_INT32 dims: -1 }
"""

BERT = """
name: "bert"
platform: "onnxruntime_onnx"
max_batch_size: 8
input { name: "token_ids" data_type: TYPE_INT32 dims: -1 }
output { name: "embedding" data_type: TYPE_FP32 dims: 384 }
"""

ENSEMBLE = """
name: "ensemble"
platform: "ensemble"
max_batch_size: 8
input { name: "INPUT0" data_type: TYPE_STRING dims: 1 }
output { name: "finaloutput" data_type: TYPE_FP32 dims: 384 }
ensemble_scheduling {
  step {
    model_name: "preprocess"
    model_version: -1
    input_map { key: "TEXT" value: "INPUT0" }
    output_map { key: "token_ids" value: "ids" }
  }
  step {
    model_name: "bert"
    model_version: -1
    input_map { key: "token_ids" value: "ids" }
    output_map { key: "embedding" value: "finaloutput" }
  }
}
"""

PYTHON_MODEL = """
class TritonPythonModel:
    def execute(self, requests):
        return [None for request in requests]
"""

BERT_MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
bert (int32[N, tokens] token_ids) => (float[N, 384] embedding)
<int64[2] shape = {1, 384}>
{
  numbers = Cast<to = 1>(token_ids)
  mean = ReduceMean<axes = [1]>(numbers)
  embedding = Expand(mean, shape)
}
"""

SOUND: Mapping[str, str] = {
    "preprocess/config.pbtxt": PREPROCESS,
    "preprocess/1/model.py": PYTHON_MODEL,
    "bert/config.pbtxt": BERT,
    "bert/1/model.onnx": BERT_MODEL,
    "ensemble/config.pbtxt": ENSEMBLE,
    "ensemble/1/.gitkeep": "",
}
