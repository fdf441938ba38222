# The types of Triton's model configuration, as tritonclient 2.73.0 compiles it (a test compares every field).
# `ModelRateLimiter.Resource.global` is left out: the name is a Python keyword (use getattr).

from google.protobuf.internal.containers import (
    MessageMap,
    RepeatedCompositeFieldContainer,
    RepeatedScalarFieldContainer,
    ScalarMap,
)
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.message import Message

SCHEMA_RELEASE: str

DataType: EnumTypeWrapper

def enum_name(message: Message, field: str) -> str: ...

class ModelRateLimiter(Message):
    class Resource(Message):
        name: str
        count: int

    @property
    def resources(self) -> RepeatedCompositeFieldContainer[ModelRateLimiter.Resource]: ...
    priority: int

class ModelInstanceGroup(Message):
    KIND_AUTO: int
    KIND_GPU: int
    KIND_CPU: int
    KIND_MODEL: int
    class SecondaryDevice(Message):
        KIND_NVDLA: int
        kind: int
        device_id: int

    name: str
    kind: int
    count: int
    @property
    def rate_limiter(self) -> ModelRateLimiter: ...
    @property
    def gpus(self) -> RepeatedScalarFieldContainer[int]: ...
    @property
    def secondary_devices(self) -> RepeatedCompositeFieldContainer[ModelInstanceGroup.SecondaryDevice]: ...
    @property
    def profile(self) -> RepeatedScalarFieldContainer[str]: ...
    passive: bool
    host_policy: str

class ModelTensorReshape(Message):
    @property
    def shape(self) -> RepeatedScalarFieldContainer[int]: ...

class ModelInput(Message):
    FORMAT_NONE: int
    FORMAT_NHWC: int
    FORMAT_NCHW: int
    name: str
    data_type: int
    format: int
    @property
    def dims(self) -> RepeatedScalarFieldContainer[int]: ...
    @property
    def reshape(self) -> ModelTensorReshape: ...
    is_shape_tensor: bool
    allow_ragged_batch: bool
    optional: bool
    is_non_linear_format_io: bool

class ModelOutput(Message):
    name: str
    data_type: int
    @property
    def dims(self) -> RepeatedScalarFieldContainer[int]: ...
    @property
    def reshape(self) -> ModelTensorReshape: ...
    label_filename: str
    is_shape_tensor: bool
    is_non_linear_format_io: bool

class BatchInput(Message):
    BATCH_ELEMENT_COUNT: int
    BATCH_ACCUMULATED_ELEMENT_COUNT: int
    BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO: int
    BATCH_MAX_ELEMENT_COUNT_AS_SHAPE: int
    BATCH_ITEM_SHAPE: int
    BATCH_ITEM_SHAPE_FLATTEN: int
    kind: int
    @property
    def target_name(self) -> RepeatedScalarFieldContainer[str]: ...
    data_type: int
    @property
    def source_input(self) -> RepeatedScalarFieldContainer[str]: ...

class BatchOutput(Message):
    BATCH_SCATTER_WITH_INPUT_SHAPE: int
    @property
    def target_name(self) -> RepeatedScalarFieldContainer[str]: ...
    kind: int
    @property
    def source_input(self) -> RepeatedScalarFieldContainer[str]: ...

class ModelVersionPolicy(Message):
    class Latest(Message):
        num_versions: int

    class All(Message): ...

    class Specific(Message):
        @property
        def versions(self) -> RepeatedScalarFieldContainer[int]: ...

    @property
    def latest(self) -> ModelVersionPolicy.Latest: ...
    @property
    def all(self) -> ModelVersionPolicy.All: ...
    @property
    def specific(self) -> ModelVersionPolicy.Specific: ...

class ModelOptimizationPolicy(Message):
    PRIORITY_DEFAULT: int
    PRIORITY_MAX: int
    PRIORITY_MIN: int
    class Graph(Message):
        level: int

    class Cuda(Message):
        class GraphSpec(Message):
            class Shape(Message):
                @property
                def dim(self) -> RepeatedScalarFieldContainer[int]: ...

            class LowerBound(Message):
                batch_size: int
                @property
                def input(self) -> MessageMap[str, ModelOptimizationPolicy.Cuda.GraphSpec.Shape]: ...

            batch_size: int
            @property
            def input(self) -> MessageMap[str, ModelOptimizationPolicy.Cuda.GraphSpec.Shape]: ...
            @property
            def graph_lower_bound(self) -> ModelOptimizationPolicy.Cuda.GraphSpec.LowerBound: ...

        graphs: bool
        busy_wait_events: bool
        @property
        def graph_spec(self) -> RepeatedCompositeFieldContainer[ModelOptimizationPolicy.Cuda.GraphSpec]: ...
        output_copy_stream: bool

    class ExecutionAccelerators(Message):
        class Accelerator(Message):
            name: str
            @property
            def parameters(self) -> ScalarMap[str, str]: ...

        @property
        def gpu_execution_accelerator(
            self,
        ) -> RepeatedCompositeFieldContainer[ModelOptimizationPolicy.ExecutionAccelerators.Accelerator]: ...
        @property
        def cpu_execution_accelerator(
            self,
        ) -> RepeatedCompositeFieldContainer[ModelOptimizationPolicy.ExecutionAccelerators.Accelerator]: ...

    class PinnedMemoryBuffer(Message):
        enable: bool

    @property
    def graph(self) -> ModelOptimizationPolicy.Graph: ...
    priority: int
    @property
    def cuda(self) -> ModelOptimizationPolicy.Cuda: ...
    @property
    def execution_accelerators(self) -> ModelOptimizationPolicy.ExecutionAccelerators: ...
    @property
    def input_pinned_memory(self) -> ModelOptimizationPolicy.PinnedMemoryBuffer: ...
    @property
    def output_pinned_memory(self) -> ModelOptimizationPolicy.PinnedMemoryBuffer: ...
    gather_kernel_buffer_threshold: int
    eager_batching: bool

class ModelQueuePolicy(Message):
    REJECT: int
    DELAY: int
    timeout_action: int
    default_timeout_microseconds: int
    allow_timeout_override: bool
    max_queue_size: int

class ModelDynamicBatching(Message):
    @property
    def preferred_batch_size(self) -> RepeatedScalarFieldContainer[int]: ...
    max_queue_delay_microseconds: int
    preserve_ordering: bool
    priority_levels: int
    default_priority_level: int
    @property
    def default_queue_policy(self) -> ModelQueuePolicy: ...
    @property
    def priority_queue_policy(self) -> MessageMap[int, ModelQueuePolicy]: ...

class ModelSequenceBatching(Message):
    class Control(Message):
        CONTROL_SEQUENCE_START: int
        CONTROL_SEQUENCE_READY: int
        CONTROL_SEQUENCE_END: int
        CONTROL_SEQUENCE_CORRID: int
        kind: int
        @property
        def int32_false_true(self) -> RepeatedScalarFieldContainer[int]: ...
        @property
        def fp32_false_true(self) -> RepeatedScalarFieldContainer[float]: ...
        @property
        def bool_false_true(self) -> RepeatedScalarFieldContainer[bool]: ...
        data_type: int

    class ControlInput(Message):
        name: str
        @property
        def control(self) -> RepeatedCompositeFieldContainer[ModelSequenceBatching.Control]: ...

    class InitialState(Message):
        data_type: int
        @property
        def dims(self) -> RepeatedScalarFieldContainer[int]: ...
        zero_data: bool
        data_file: str
        name: str

    class State(Message):
        input_name: str
        output_name: str
        data_type: int
        @property
        def dims(self) -> RepeatedScalarFieldContainer[int]: ...
        @property
        def initial_state(self) -> RepeatedCompositeFieldContainer[ModelSequenceBatching.InitialState]: ...
        use_same_buffer_for_input_output: bool
        use_growable_memory: bool

    class StrategyDirect(Message):
        max_queue_delay_microseconds: int
        minimum_slot_utilization: float

    class StrategyOldest(Message):
        max_candidate_sequences: int
        @property
        def preferred_batch_size(self) -> RepeatedScalarFieldContainer[int]: ...
        max_queue_delay_microseconds: int
        preserve_ordering: bool

    @property
    def direct(self) -> ModelSequenceBatching.StrategyDirect: ...
    @property
    def oldest(self) -> ModelSequenceBatching.StrategyOldest: ...
    max_sequence_idle_microseconds: int
    @property
    def control_input(self) -> RepeatedCompositeFieldContainer[ModelSequenceBatching.ControlInput]: ...
    @property
    def state(self) -> RepeatedCompositeFieldContainer[ModelSequenceBatching.State]: ...
    iterative_sequence: bool

class ModelEnsembling(Message):
    class Step(Message):
        model_name: str
        model_version: int
        @property
        def input_map(self) -> ScalarMap[str, str]: ...
        @property
        def output_map(self) -> ScalarMap[str, str]: ...
        model_namespace: str

    @property
    def step(self) -> RepeatedCompositeFieldContainer[ModelEnsembling.Step]: ...
    max_inflight_requests: int

class ModelParameter(Message):
    string_value: str

class ModelWarmup(Message):
    class Input(Message):
        data_type: int
        @property
        def dims(self) -> RepeatedScalarFieldContainer[int]: ...
        zero_data: bool
        random_data: bool
        input_data_file: str

    name: str
    batch_size: int
    @property
    def inputs(self) -> MessageMap[str, ModelWarmup.Input]: ...
    count: int

class ModelOperations(Message):
    @property
    def op_library_filename(self) -> RepeatedScalarFieldContainer[str]: ...

class ModelTransactionPolicy(Message):
    decoupled: bool

class ModelRepositoryAgents(Message):
    class Agent(Message):
        name: str
        @property
        def parameters(self) -> ScalarMap[str, str]: ...

    @property
    def agents(self) -> RepeatedCompositeFieldContainer[ModelRepositoryAgents.Agent]: ...

class ModelResponseCache(Message):
    enable: bool

class ModelMetrics(Message):
    class MetricControl(Message):
        class MetricIdentifier(Message):
            family: str

        class HistogramOptions(Message):
            @property
            def buckets(self) -> RepeatedScalarFieldContainer[float]: ...

        @property
        def metric_identifier(self) -> ModelMetrics.MetricControl.MetricIdentifier: ...
        @property
        def histogram_options(self) -> ModelMetrics.MetricControl.HistogramOptions: ...

    @property
    def metric_control(self) -> RepeatedCompositeFieldContainer[ModelMetrics.MetricControl]: ...

class ModelConfig(Message):
    name: str
    platform: str
    backend: str
    runtime: str
    @property
    def version_policy(self) -> ModelVersionPolicy: ...
    max_batch_size: int
    @property
    def input(self) -> RepeatedCompositeFieldContainer[ModelInput]: ...
    @property
    def output(self) -> RepeatedCompositeFieldContainer[ModelOutput]: ...
    @property
    def batch_input(self) -> RepeatedCompositeFieldContainer[BatchInput]: ...
    @property
    def batch_output(self) -> RepeatedCompositeFieldContainer[BatchOutput]: ...
    @property
    def optimization(self) -> ModelOptimizationPolicy: ...
    @property
    def dynamic_batching(self) -> ModelDynamicBatching: ...
    @property
    def sequence_batching(self) -> ModelSequenceBatching: ...
    @property
    def ensemble_scheduling(self) -> ModelEnsembling: ...
    @property
    def instance_group(self) -> RepeatedCompositeFieldContainer[ModelInstanceGroup]: ...
    default_model_filename: str
    @property
    def cc_model_filenames(self) -> ScalarMap[str, str]: ...
    @property
    def metric_tags(self) -> ScalarMap[str, str]: ...
    @property
    def parameters(self) -> MessageMap[str, ModelParameter]: ...
    @property
    def model_warmup(self) -> RepeatedCompositeFieldContainer[ModelWarmup]: ...
    @property
    def model_operations(self) -> ModelOperations: ...
    @property
    def model_transaction_policy(self) -> ModelTransactionPolicy: ...
    @property
    def model_repository_agents(self) -> ModelRepositoryAgents: ...
    @property
    def response_cache(self) -> ModelResponseCache: ...
    @property
    def model_metrics(self) -> ModelMetrics: ...
