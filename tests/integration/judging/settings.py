"""Settings that say something by themselves: merged into a configuration, each meets what is there."""

from __future__ import annotations

from typing import Final

__all__ = ["NEWER_SETTINGS", "SETTINGS"]

_REJECT = "timeout_action: REJECT default_timeout_microseconds: 10"
_DELAY = "timeout_action: DELAY default_timeout_microseconds: 10"
_START = "control { kind: CONTROL_SEQUENCE_START"
_STATE = 'input_name: "S" output_name: "T" data_type: TYPE_FP32 dims: 4'

_ZERO = "zero_data: true data_type: TYPE_FP32 dims: 4"
_WARMUP = 'model_warmup { name: "w" batch_size: 1'

SETTINGS: Final = (
    "max_batch_size: 1",
    "dynamic_batching { }",
    "dynamic_batching { preferred_batch_size: [ 4, 16 ] }",
    "dynamic_batching { preserve_ordering: true }",
    "dynamic_batching { priority_levels: 2 }",
    "dynamic_batching { priority_levels: 2 default_priority_level: 3 }",
    "dynamic_batching { priority_levels: 2 default_priority_level: 1 preserve_ordering: true }",
    f"dynamic_batching {{ default_queue_policy {{ {_DELAY} }} preserve_ordering: true }}",
    "dynamic_batching { max_queue_delay_microseconds: 100 default_queue_policy { max_queue_size: 2 } }",
    "dynamic_batching { priority_levels: 2 default_priority_level: 1 "
    "priority_queue_policy { key: 2 value { max_queue_size: 2 allow_timeout_override: true } } }",
    "dynamic_batching { preserve_ordering: true } response_cache { enable: true }",
    f"dynamic_batching {{ priority_queue_policy {{ key: 3 value {{ {_REJECT} }} }} }}",
    f"dynamic_batching {{ priority_queue_policy {{ key: 1 value {{ {_DELAY} }} }} preserve_ordering: true }}",
    "sequence_batching { }",
    "sequence_batching { direct { minimum_slot_utilization: 2 } }",
    "sequence_batching { direct { minimum_slot_utilization: -0.5 } }",
    "sequence_batching { oldest { preferred_batch_size: 0 } }",
    "sequence_batching { oldest { preferred_batch_size: 64 } }",
    "sequence_batching { iterative_sequence: true }",
    f'sequence_batching {{ control_input {{ name: "START" {_START} }} }} }}',
    f'sequence_batching {{ control_input {{ name: "OTHER" {_START} int32_false_true: [ 0, 1 ] }} }} }}',
    f'sequence_batching {{ control_input {{ name: "IN0" {_START} int32_false_true: [ 0, 1 ] }} }} }}',
    f"sequence_batching {{ control_input {{ {_START} fp32_false_true: [ 0, 1 ] }} }} }}",
    f'sequence_batching {{ control_input {{ name: "A" {_START} fp32_false_true: 0 }} }} }}',
    f'sequence_batching {{ control_input {{ name: "A" {_START} fp32_false_true: 0 int32_false_true: 0 }} }} }}',
    'sequence_batching { control_input { name: "ID" control { kind: CONTROL_SEQUENCE_CORRID } } }',
    'sequence_batching { control_input { name: "ID" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_FP32 } } }',
    'sequence_batching { control_input { name: "ID" control { kind: CONTROL_SEQUENCE_CORRID int32_false_true: 0 } } }',
    f"sequence_batching {{ state {{ {_STATE} }} }}",
    f"sequence_batching {{ state {{ {_STATE} use_growable_memory: true }} }}",
    f"sequence_batching {{ state {{ {_STATE} use_same_buffer_for_input_output: true use_growable_memory: true }} }}",
    f"sequence_batching {{ state {{ {_STATE} initial_state {{ }} }} }}",
    f'sequence_batching {{ state {{ {_STATE} initial_state {{ name: "z" zero_data: true }} }} }}',
    f'sequence_batching {{ state {{ {_STATE} initial_state {{ name: "z" zero_data: true data_type: TYPE_FP32 '
    "dims: -1 } } }",
    f'sequence_batching {{ state {{ {_STATE} initial_state {{ name: "z" data_file: "none" data_type: TYPE_FP32 '
    "dims: 4 } } }",
    f"sequence_batching {{ state {{ {_STATE} initial_state {{ {_ZERO} }} }} }}",
    f'sequence_batching {{ state {{ {_STATE} initial_state {{ name: "y" {_ZERO} }} '
    f'initial_state {{ name: "z" {_ZERO} }} }} }}',
    "sequence_batching { state { dims: 4 } }",
    "ensemble_scheduling { }",
    "ensemble_scheduling { step { } }",
    'ensemble_scheduling { step { model_name: "ensemble_0" model_version: -1 } }',
    'ensemble_scheduling { step { model_name: "ensemble_0" input_map { key: "IN0" value: "x0" } } }',
    "instance_group { kind: KIND_CPU gpus: 0 }",
    "instance_group { kind: KIND_MODEL gpus: 0 }",
    "instance_group { kind: KIND_GPU gpus: -1 }",
    "instance_group { count: -1 }",
    "instance_group { passive: true }",
    'instance_group { profile: "one" }',
    'instance_group { profile: "-1" }',
    "instance_group { secondary_devices { kind: KIND_NVDLA device_id: 7 } }",
    "instance_group { rate_limiter { resources { } } }",
    "response_cache { enable: true }",
    "model_transaction_policy { decoupled: true }",
    "response_cache { enable: true } model_transaction_policy { decoupled: true }",
    "optimization { }",
    'optimization { execution_accelerators { gpu_execution_accelerator { name: "tensorrt" } } }',
    'optimization { execution_accelerators { cpu_execution_accelerator { name: "openvino" } } }',
    "optimization { cuda { graph_spec { batch_size: 1 } } }",
    "model_warmup { }",
    _WARMUP + " }",
    f'model_warmup {{ name: "w" batch_size: 16 inputs {{ key: "IN0" value {{ {_ZERO} }} }} }}',
    _WARMUP + ' inputs { key: "IN0" value { data_type: TYPE_FP32 dims: 4 } } }',
    _WARMUP + ' inputs { key: "IN0" value { data_type: TYPE_FP32 dims: -1 zero_data: true } } }',
    _WARMUP + ' inputs { key: "IN0" value { data_type: TYPE_FP32 dims: 4 input_data_file: "none" } } }',
    _WARMUP + f' inputs {{ key: "NO" value {{ {_ZERO} }} }} }}',
    'model_operations { op_library_filename: "custom.so" }',
    'parameters { key: "TRITON_BATCH_STRATEGY_PATH" value { string_value: "none.so" } }',
    'parameters { key: "MAX_BATCH_VOLUME_BYTES" value { string_value: "x" } }',
    'batch_input { kind: BATCH_ELEMENT_COUNT target_name: "B" data_type: TYPE_FP32 source_input: "IN0" }',
    'batch_input { kind: BATCH_ITEM_SHAPE target_name: [ "B", "C" ] data_type: TYPE_INT32 source_input: "IN0" }',
    'batch_input { kind: BATCH_ELEMENT_COUNT target_name: "IN0" data_type: TYPE_FP32 source_input: "IN0" }',
    'batch_output { kind: BATCH_SCATTER_WITH_INPUT_SHAPE target_name: "OUT0" source_input: "IN0" }',
    'batch_output { kind: BATCH_SCATTER_WITH_INPUT_SHAPE target_name: [ "OUT0", "OUT0" ] source_input: "IN0" }',
    'batch_output { kind: BATCH_SCATTER_WITH_INPUT_SHAPE target_name: "NO" source_input: "IN0" }',
    "version_policy { latest { } }",
    "version_policy { specific { } }",
    "version_policy { specific { versions: 9 } }",
    'input { name: "IN9" data_type: TYPE_FP32 dims: 4 optional: true }',
    'input { name: "IN9" data_type: TYPE_FP32 dims: 1 reshape { } }',
    'input { name: "IN9" data_type: TYPE_FP32 dims: [ 2, -1, 6 ] reshape { shape: [ -1, 2, 6 ] } }',
    'input { name: "IN9" data_type: TYPE_FP32 dims: [ 2, -1, 6 ] reshape { shape: [ 2, -1, 3, 2 ] } }',
    'input { name: "IN9" data_type: TYPE_FP32 dims: 4 reshape { shape: 0 } }',
    'input { name: "IN9" data_type: TYPE_FP32 dims: [ 3, 4 ] format: FORMAT_NCHW }',
    'input { name: "IN9" data_type: TYPE_INT32 dims: 4 is_shape_tensor: true }',
    'input { name: "IN9" data_type: TYPE_FP32 dims: [ 3, 4, 4 ] is_non_linear_format_io: true }',
    'output { name: "OUT9" data_type: TYPE_FP32 dims: 4 is_shape_tensor: true }',
    'output { name: "OUT9" data_type: TYPE_FP32 dims: [ 3, 4 ] is_non_linear_format_io: true }',
    'output { name: "OUT9" data_type: TYPE_FP32 dims: 4 label_filename: "none.txt" }',
    'metric_tags { key: "a" value: "b" }',
    'cc_model_filenames { key: "8.6" value: "none.plan" }',
    'default_model_filename: "none"',
    'backend: "ensemble"',
    'platform: "ensemble"',
)
"""In protobuf's text format; singular fields replace what is there."""

_FAMILY = 'metric_identifier { family: "nv_inference_first_response_histogram_ms" }'

NEWER_SETTINGS: Final = (
    ("24.11", f"model_metrics {{ metric_control {{ {_FAMILY} histogram_options {{ buckets: [ 1, 10 ] }} }} }}"),
    ("24.11", f"model_metrics {{ metric_control {{ {_FAMILY} }} }}"),
    ("24.11", "model_metrics { metric_control { histogram_options { buckets: [ 1, 10 ] } } }"),
    ("25.11", "ensemble_scheduling { max_inflight_requests: 2 }"),
    ("26.03", 'platform: "torch_aoti"'),
    ("26.04", 'platform: "libtorch"'),
)
"""The first release that knows each, and the setting."""
