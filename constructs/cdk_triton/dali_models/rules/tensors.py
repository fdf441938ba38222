"""CT874 to CT878: whether a DALI pipeline has the inputs and outputs of its configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cdk_triton._dali_signature import DATA_TYPES, PipelineSignature, PipelineTensor, SignatureFault, signature_faults
from cdk_triton.checks.registry import Problem, in_line, would_not_load
from cdk_triton.checks.sources import backend
from cdk_triton.dali_models.configured import configured_tensors
from cdk_triton.dali_models.models import DaliPipelineFile, Defined, defined_rule, pipeline_rule
from cdk_triton.dali_models.reader.definition import Definition
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.locations import locate
from cdk_triton.triton.schema import enum_name

_TOOLS = "src/config_tools/config_tools.cc"


@pipeline_rule(
    "CT874",
    Severity.ERROR,
    "a configuration contradicts its DALI pipeline",
    source=backend("dali_backend", _TOOLS, 367, 431),
)
def contradicting_tensors(each: DaliPipelineFile) -> Iterator[Problem]:
    """`config.pbtxt` has an input that the pipeline lacks, too many outputs, or another type or number of dimensions.

    The server does not load the model. An input is an `external_source` with its name. DALI drops an `external_source`
    that no output needs, so the configuration must not list it. Outputs have no names: the first output of the
    configuration is the first one that the pipeline returns. A pipeline declares the types and dimensions of its inputs
    with `dtype` and `ndim` of `external_source`, and those of its outputs with `output_dtype` and `output_ndim` of
    `@pipeline_def`. Without `ndim`, an input has a dimension for each letter of its `layout`: 3 for `layout="HWC"`. The
    server does not load the model either if neither the configuration nor the pipeline has the type and the dimensions
    of an input.

    Instances of the kind `KIND_CPU` have no GPU, so DALI rejects a pipeline with an operator of `device="mixed"` or
    `device="gpu"`, or with `.gpu()`.

    Example:
        # model/config.pbtxt
        backend: "dali"
        max_batch_size: 8
        input { name: "IMAGE" data_type: TYPE_UINT8 dims: -1 }
        input { name: "MASK" data_type: TYPE_UINT8 dims: -1 }
        output { name: "OUT" data_type: TYPE_FP32 dims: [ 3, 224, 224 ] }
        # model/1/dali.py
        from nvidia.dali import fn, pipeline_def
        from nvidia.dali.plugin.triton import autoserialize

        @autoserialize
        @pipeline_def(batch_size=8, num_threads=1, device_id=0)
        def pipeline():
            images = fn.decoders.image(fn.external_source(name="IMAGE"), device="mixed")
            masks = fn.external_source(name="MASK")
            return fn.crop_mirror_normalize(images, crop=(224, 224))

    Instead:
        # model/config.pbtxt
        backend: "dali"
        max_batch_size: 8
        input { name: "IMAGE" data_type: TYPE_UINT8 dims: -1 }
        output { name: "OUT" data_type: TYPE_FP32 dims: [ 3, 224, 224 ] }

    Limits:
        In `dali.py`, the rule knows literals, and names that are set once to a literal. It skips the inputs if a name
        is computed, and the outputs if the file does not show how many the pipeline returns. The build of the recipe
        `DaliPipeline` compares everything.
    """
    faults = list(_faults(each))
    is_misnamed = any(fault.field.endswith(".name") for fault in faults)
    for fault in faults:
        if not fault.is_completed and not (is_misnamed and fault.field == "input"):
            said = _said(fault, each.owner.model.name)
            yield each.owner.owner.problem(fault.field, would_not_load(each.owner.model, fault.found, said), fault.fix)
    content = each.content
    on_gpu = content.on_gpu if isinstance(content, Definition) else None
    kinds = [enum_name(group, "kind") for group in each.owner.config.instance_group]
    if on_gpu is not None and "KIND_CPU" in kinds:
        found = f"line {on_gpu.line} of {each.path} runs {on_gpu.name!r} on the GPU, which instances of KIND_CPU lack"
        said = "'device_id' should not be `CPU_ONLY_DEVICE_ID`."
        yield each.owner.owner.problem(
            f"instance_group[{kinds.index('KIND_CPU')}].kind",
            would_not_load(each.owner.model, found, said),
            "write kind: KIND_GPU, or use operators of the CPU",
        )


@pipeline_rule(
    "CT875",
    Severity.WARNING,
    "a configuration lacks an input or output of its DALI pipeline",
    source=backend("dali_backend", _TOOLS, 279, 320),
)
def missing_tensors(each: DaliPipelineFile) -> Iterator[Problem]:
    """The server adds the input or output to the configuration when it loads the model.

    A request without such an input fails, and ensembles do not know such an output. If the configuration does not list
    any inputs, the rule does not report them, because the server then adds all of them. The same holds for outputs.

    Example:
        # model/config.pbtxt
        backend: "dali"
        max_batch_size: 8
        input { name: "IMAGE" data_type: TYPE_UINT8 dims: -1 }
        output { name: "OUT" data_type: TYPE_FP32 dims: [ 3, 224, 224 ] }
        # model/1/dali.py
        from nvidia.dali import fn, pipeline_def
        from nvidia.dali.plugin.triton import autoserialize

        @autoserialize
        @pipeline_def(batch_size=8, num_threads=1, device_id=0)
        def pipeline():
            images = fn.decoders.image(fn.external_source(name="IMAGE"), device="mixed")
            return fn.crop_mirror_normalize(images, crop=(224, 224)), images

    Instead:
        # model/1/dali.py
        from nvidia.dali import fn, pipeline_def
        from nvidia.dali.plugin.triton import autoserialize

        @autoserialize
        @pipeline_def(batch_size=8, num_threads=1, device_id=0)
        def pipeline():
            images = fn.decoders.image(fn.external_source(name="IMAGE"), device="mixed")
            return fn.crop_mirror_normalize(images, crop=(224, 224))

    Limits:
        The limits of CT874 apply. The build of the recipe `DaliPipeline` rejects such a configuration.
    """
    faults = list(_faults(each))
    is_misnamed = any(fault.field.endswith(".name") for fault in faults)
    for fault in faults:
        if fault.is_completed and not (is_misnamed and fault.field == "input"):
            yield each.owner.owner.problem(
                fault.field,
                f"{fault.found}; the server would add what is missing to {each.owner.model.name!r}",
                fault.fix,
            )


@defined_rule(
    "CT876",
    Severity.WARNING,
    "a DALI pipeline has an external_source that Triton does not use as it is written",
    source=backend("dali_backend", "src/dali_executor/dali_pipeline.h", 128, 146),
)
def own_source(each: Defined) -> Iterator[Problem]:
    """An `external_source` has a `source`, or does not have a name.

    In training, DALI calls the `source` to get data. A serialised pipeline does not contain it: each `external_source`
    is an input of the model, and callers must send its data. DALI chooses a name such as `__ExternalSource_0` if the
    call does not give one.

    Example:
        # model/config.pbtxt
        backend: "dali"
        max_batch_size: 8
        input { name: "IMAGE" data_type: TYPE_UINT8 dims: -1 }
        output { name: "OUT" data_type: TYPE_FP32 dims: [ 3, 224, 224 ] }
        # model/1/dali.py
        from nvidia.dali import fn, pipeline_def
        from nvidia.dali.plugin.triton import autoserialize

        @autoserialize
        @pipeline_def(batch_size=8, num_threads=1, device_id=0)
        def pipeline():
            images = fn.decoders.image(fn.external_source(name="IMAGE", source=lambda: [b""]), device="mixed")
            return fn.crop_mirror_normalize(images, crop=(224, 224))

    Instead:
        # model/1/dali.py
        from nvidia.dali import fn, pipeline_def
        from nvidia.dali.plugin.triton import autoserialize

        @autoserialize
        @pipeline_def(batch_size=8, num_threads=1, device_id=0)
        def pipeline():
            images = fn.decoders.image(fn.external_source(name="IMAGE"), device="mixed")
            return fn.crop_mirror_normalize(images, crop=(224, 224))
    """
    for source in each.definition.inputs or ():
        if not source.is_certain:
            continue
        name = each.file.owner.model.name
        if source.has_callback:
            yield in_line(
                each.file.path,
                source.line,
                f"gives an external_source of {name!r} a source, which the server never calls, so callers must send "
                "the data",
                "write a constant in its place, such as a list of numbers, or remove the source, and give the "
                "external_source the name of an input in config.pbtxt",
            )
        elif not source.tensor.name:
            yield in_line(
                each.file.path,
                source.line,
                f"makes an external_source without a name, so DALI chooses the name of an input of {name!r}",
                "write name=…, with the name of an input in config.pbtxt",
            )


@pipeline_rule(
    "CT877",
    Severity.ERROR,
    "a DALI pipeline has no input",
    source=backend("dali_backend", "src/dali_executor/dali_executor.cc", 30, 33),
)
def no_input(each: DaliPipelineFile) -> Iterator[Problem]:
    """No output of the pipeline needs an `external_source`, as in a pipeline for training that reads files.

    The server loads the model, but every request fails or ends the server: the backend takes the batch size from the
    first input of a request, and does not expect that there is none. Replace the reader (`fn.readers`) by an
    `external_source`, and let the caller send the data.

    Example:
        # model/config.pbtxt
        backend: "dali"
        max_batch_size: 8
        output { name: "OUT" data_type: TYPE_FP32 dims: [ 3, 224, 224 ] }
        # model/1/dali.py
        from nvidia.dali import fn, pipeline_def
        from nvidia.dali.plugin.triton import autoserialize

        @autoserialize
        @pipeline_def(batch_size=8, num_threads=1, device_id=0)
        def pipeline():
            encoded, labels = fn.readers.file(file_root="/data/train")
            images = fn.decoders.image(encoded, device="mixed")
            return fn.crop_mirror_normalize(images, crop=(224, 224))

    Instead:
        # model/config.pbtxt
        backend: "dali"
        max_batch_size: 8
        input { name: "IMAGE" data_type: TYPE_UINT8 dims: -1 }
        output { name: "OUT" data_type: TYPE_FP32 dims: [ 3, 224, 224 ] }
        # model/1/dali.py
        from nvidia.dali import fn, pipeline_def
        from nvidia.dali.plugin.triton import autoserialize

        @autoserialize
        @pipeline_def(batch_size=8, num_threads=1, device_id=0)
        def pipeline():
            images = fn.decoders.image(fn.external_source(name="IMAGE"), device="mixed")
            return fn.crop_mirror_normalize(images, crop=(224, 224))

    Limits:
        The limits of CT874 apply, which reports the inputs of a configuration that such a pipeline lacks.
    """
    content = each.content
    if isinstance(content, PipelineSignature):
        is_without = not content.inputs
    else:
        sources = content.inputs if isinstance(content, Definition) else None
        is_without = sources is not None and not any(source.is_used for source in sources)
    if is_without:
        yield Problem(
            each.path,
            f"no output of the pipeline of {each.owner.model.name!r} needs an external_source, so the model has no "
            "input, and every request fails or ends the server",
            'read the data of requests with fn.external_source(name="…") in place of fn.readers',
        )


@defined_rule(
    "CT878",
    Severity.WARNING,
    "an output of a DALI pipeline has another type than in the configuration",
    source=backend("dali_backend", "src/dali_model_instance.cc", 298, 306),
)
def another_type(each: Defined) -> Iterator[Problem]:
    """The operator that makes an output has a `dtype` that is not the `data_type` in `config.pbtxt`.

    The server loads the model, because a pipeline declares the types of its outputs only with `output_dtype` of
    `@pipeline_def`. The backend then answers with the type of the operator. The next step of an ensemble rejects such
    a tensor, and callers that rely on the configuration misread it.

    Example:
        # model/config.pbtxt
        backend: "dali"
        max_batch_size: 8
        input { name: "IMAGE" data_type: TYPE_UINT8 dims: -1 }
        output { name: "OUT" data_type: TYPE_UINT8 dims: [ 3, 224, 224 ] }
        # model/1/dali.py
        from nvidia.dali import fn, pipeline_def, types
        from nvidia.dali.plugin.triton import autoserialize

        @autoserialize
        @pipeline_def(batch_size=8, num_threads=1, device_id=0)
        def pipeline():
            images = fn.decoders.image(fn.external_source(name="IMAGE"), device="mixed")
            return fn.crop_mirror_normalize(images, crop=(224, 224), dtype=types.FLOAT)

    Instead:
        # model/config.pbtxt
        backend: "dali"
        max_batch_size: 8
        input { name: "IMAGE" data_type: TYPE_UINT8 dims: -1 }
        output { name: "OUT" data_type: TYPE_FP32 dims: [ 3, 224, 224 ] }

    Limits:
        The rule knows the `dtype` of common operators in the value that the function returns, or that a variable has at
        its end. CT874 compares what `output_dtype` declares.
    """
    definition = each.definition
    _, outputs = configured_tensors(each.file.owner.config)
    declared = definition.outputs or ()
    if not len(outputs) == len(declared) == len(definition.computed):
        return  # CT874 and CT875 report another number
    for index, (entry, tensor, computed) in enumerate(zip(outputs, declared, definition.computed, strict=True)):
        if computed not in (None, entry["data_type"]) and tensor.data_type is None and entry["data_type"] in DATA_TYPES:
            yield each.file.owner.owner.problem(
                f"output[{index}].data_type",
                f"the operator that makes the output {entry['name']!r} writes {computed}, but config.pbtxt has "
                f"{entry['data_type']}, so the next step of an ensemble would reject it, and callers would misread it",
                "correct the data_type in config.pbtxt, or the dtype of the operator",
            )


def _faults(each: DaliPipelineFile) -> Iterator[SignatureFault]:
    """The differences between a pipeline and its configuration, as far as they are certain."""
    inputs, outputs = configured_tensors(each.owner.config)
    content = each.content
    if isinstance(content, PipelineSignature):
        yield from signature_faults(content, inputs, outputs, each.owner.config.max_batch_size)
        yield from _unbatched_faults(each, content)
        return
    if not isinstance(content, Definition):
        return
    signature = PipelineSignature(list(_inputs(content)), list(content.outputs or ()))
    certain = {
        source.tensor.name or _own_name(index) for index, source in enumerate(content.inputs or ()) if source.is_certain
    }
    faults = signature_faults(
        PipelineSignature(list(_as_configured(content, inputs)), signature.outputs),
        inputs if content.inputs is not None else [],
        outputs if content.outputs is not None else [],
        each.owner.config.max_batch_size,
    )
    yield from (fault for fault in faults if fault.field != "input" or fault.name in certain)
    yield from _unbatched_faults(each, signature)


def _unbatched_faults(each: DaliPipelineFile, signature: PipelineSignature) -> Iterator[SignatureFault]:
    """The dims that lack the dimension of the batch, where config.pbtxt writes max_batch_size: 0.

    Without the field, the backend takes the pipeline's own batch size (`ReadMBSFromPBtxt` and `add_batch_dim` in
    src/config_tools/config_tools.cc).
    """
    model, config = each.owner.model, each.owner.config
    if config.max_batch_size or model.config_text is None or locate(model.config_text, "max_batch_size") is None:
        return
    inputs, outputs = configured_tensors(config)
    by_name = {tensor.name: tensor for tensor in signature.inputs}
    pairs = [("input", index, entry, by_name.get(entry["name"])) for index, entry in enumerate(inputs)]
    if len(outputs) == len(signature.outputs):
        pairs += [("output", index, outputs[index], tensor) for index, tensor in enumerate(signature.outputs)]
    for side, index, entry, tensor in pairs:
        if tensor is not None and entry["dims"] and len(entry["dims"]) == tensor.ndim:
            yield SignatureFault(
                f"{side}[{index}].dims",
                entry["name"],
                f"the {side} {entry['name']!r} is {tensor.ndim}-dimensional in the pipeline, and the dims "
                f"{entry['dims']} in config.pbtxt lack the dimension of the batch, which max_batch_size: 0 adds",
                "write -1 for the batch before the other dims, or a max_batch_size above 0",
            )


def _inputs(definition: Definition) -> Iterator[PipelineTensor]:
    """The inputs that a pipeline has or may have."""
    for index, source in enumerate(definition.inputs or ()):
        if source.is_used:
            name = source.tensor.name or _own_name(index)
            yield source.tensor._replace(name=name) if source.is_certain else PipelineTensor(name, None, None)


def _as_configured(definition: Definition, entries: Sequence[Mapping[str, Any]]) -> Iterator[PipelineTensor]:
    """These inputs, with what they may declare and the source does not show as it is in `config.pbtxt`."""
    listed = {entry["name"]: entry for entry in entries}
    used = (source for source in definition.inputs or () if source.is_used)
    for tensor, source in zip(_inputs(definition), used, strict=True):
        entry = listed.get(tensor.name, {"data_type": "TYPE_INVALID", "dims": ()})
        data_type, ndim = tensor.data_type, tensor.ndim
        if data_type is None and ("data_type" in source.may_declare or not source.is_certain):
            data_type = entry["data_type"]
        if ndim is None and ("dims" in source.may_declare or not source.is_certain):
            ndim = len(entry["dims"])
        yield PipelineTensor(tensor.name, data_type, ndim)


def _own_name(index: int) -> str:
    """The name that DALI gives an input."""
    return f"__ExternalSource_{index}"


def _said(fault: SignatureFault, model: str) -> str:
    """The server's words."""
    if fault.missing:
        return f"model input '{fault.name}' must specify '{fault.missing}' for {model}"
    return {
        "name": f"Configuration file contains config for {fault.name} but such input is not present in the pipeline.",
        "output": "The number of outputs specified in the DALI pipeline and the configuration file do not match.",
        "data_type": f'Mismatch of data_type config for "{fault.name}".',
        "dims": f'Mismatch in number of dimensions for "{fault.name}"',
    }[fault.field.rpartition(".")[2]]
