"""CT841 and CT860: whether the file of a PyTorch model is what its platform loads."""

from __future__ import annotations

from collections.abc import Iterator

from cdk_triton._wording import listed, quoted
from cdk_triton.checks.derived.backend_files import BackendFile, file_rule
from cdk_triton.checks.derived.releases import is_older
from cdk_triton.checks.registry import Problem
from cdk_triton.checks.sources import backend
from cdk_triton.pytorch_models.models import is_compiled, is_scripted, torch_contents
from cdk_triton.pytorch_models.reader.file import NEWEST_FORMAT, TorchFile
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.unreadable import Unreadable

_NO_ARCHIVE = "failed finding central directory"
_NO_CODE = "PytorchStreamReader failed locating file constants.pkl: file not found"
_NO_LIBRARY = "Failed to find a generated cpp file or so file for model 'model' in the zip archive."

_SAVE = 'write it with torch.jit.trace(model, example_inputs).save("{0}") or torch.jit.script(model).save("{0}")'
_COMPILE = (
    "write it with torch._inductor.aoti_compile_and_package(torch.export.export(model, example_inputs), "
    'package_path="{0}")'
)

# Kind → what the file is.
_KINDS = {
    "compiled": "is a PyTorch 2 archive that AOTInductor compiled",
    "exported": "was written by torch.export.save",
    "old": "was written by torch.save of a PyTorch before 1.6",
    "package": "was written by torch.package",
    "pickled": "was written by torch.save and contains a pickled object",
    "torchscript": "is TorchScript",
    "weights": "was written by torch.save and contains only weights",
    "zip": "is a zip archive that PyTorch did not write",
}


@file_rule(
    "CT841",
    Severity.ERROR,
    "the file of a PyTorch model is not TorchScript",
    source=backend("pytorch_backend", "src/pt/model_state.cc", 226, 249),
)
def no_torchscript(each: BackendFile) -> Iterator[Problem]:
    """The PyTorch backend loads TorchScript, which `torch.jit.save` writes, and not what `torch.save` writes.

    A file of `torch.save` has the same name and contains the weights, or a pickle of the module, but not the model's
    code. `torch.export.save` and `aoti_compile_and_package` write PyTorch 2 archives. From 26.03 on, the backend loads
    a compiled archive if the configuration has the platform `torch_aoti` (CT860). The backend calls the method
    `forward`, so the model needs this method.

    Example:
        # model/config.pbtxt
        backend: "pytorch"
        input { name: "x" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: 4 }
        # model/1/model.pt
        weights

    Instead:
        # model/1/model.pt
        def forward(self, x: Tensor) -> Tensor

    Limits:
        The rule does not unpickle anything, and does not check the values of weights. It skips files in the FlatBuffer
        format of TorchScript, and models with `runtime`.
    """
    read = torch_contents(each)
    if read is None or not is_scripted(each.context, each.model):
        return
    save = _SAVE.format(each.path.name)
    if isinstance(read, Unreadable):
        found, words, fix = read.reason, f"PytorchStreamReader failed reading zip archive: {_NO_ARCHIVE}", save
    elif read.kind == "torchscript":
        if read.format_version is not None and read.format_version > NEWEST_FORMAT:
            found = f"has the format {read.format_version} of TorchScript"
            words = (
                f"Attempted to read a PyTorch file with version {read.format_version}, but the maximum supported "
                f"version for reading is {NEWEST_FORMAT}. Your PyTorch installation may be too old."
            )
            fix = "write it with the PyTorch of the release, or an older one"
        elif not read.has_forward:
            found, words = "contains a model without the method forward", "Method 'forward' is not defined."
            fix = f"add a method forward that calls the model, and {save}"
        else:
            return
    elif read.kind == "mobile":
        return
    else:
        found = _KINDS[read.kind]
        words = f"PytorchStreamReader failed reading zip archive: {_NO_ARCHIVE}" if read.kind == "old" else _NO_CODE
        fix = save
        if read.kind == "compiled":
            fix = f'write platform: "torch_aoti", which releases from 26.03 on have, or {save}'
    yield each.unloadable(f"the file {found}", f"failed to load model '{each.model.name}': {words}", fix)


@file_rule(
    "CT860",
    Severity.ERROR,
    "the file of a compiled PyTorch model is something else",
    source=backend("pytorch_backend", "src/pt2/model_state.cc", 379, 440),
)
def not_compiled(each: BackendFile) -> Iterator[Problem]:
    """With the platform `torch_aoti`, the PyTorch backend loads a PyTorch 2 archive that AOTInductor compiled.

    `torch.export.save` also writes a `.pt2` file, but does not compile the model. The backend loads the model with the
    name `model`, the default of `aoti_compile_and_package`. From 26.05 on, the backend also reads the call
    specification of the model. It accepts tensors, and dictionaries, lists and tuples of tensors, and requires at least
    one positional argument.

    Example:
        # model/config.pbtxt
        platform: "torch_aoti"
        input { name: "INPUT__0" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: 4 }
        # model/1/model.pt2
        def forward(self, x: Tensor) -> Tensor

    Instead:
        # model/1/model.pt2
        (compiled for cuda: 1 input)

    Limits:
        The rule reads the call specification only if the archive contains it as text, as archives of PyTorch 2.6 to
        2.13 do.
    """
    read = torch_contents(each)
    if read is None or not is_compiled(each.context, each.model):
        return
    fault = _fault_of_archive(each, read)
    if fault is not None:
        found, words, fix = fault
        yield each.unloadable(f"the file {found}", words, fix)


def _fault_of_archive(each: BackendFile, read: TorchFile | Unreadable) -> tuple[str, str, str] | None:
    """What was found, the server's words, and the fix."""
    compile_it = _COMPILE.format(each.path.name)
    if isinstance(read, Unreadable):
        return read.reason, f"Failed to initialize zip archive: {_NO_ARCHIVE}", compile_it
    compiled = read.compiled
    if compiled is None:
        if read.kind in ("old", "mobile"):
            return "is not a zip archive", f"Failed to initialize zip archive: {_NO_ARCHIVE}", compile_it
        fix = compile_it
        if read.kind == "torchscript":
            fix = f'write platform: "pytorch_libtorch" and default_model_filename: "{each.path.name}", or {compile_it}'
        return _KINDS[read.kind], _NO_LIBRARY, fix
    if "model" not in compiled.names:
        found = f"has the models {listed(list(map(quoted, compiled.names))) or 'none'}, but not 'model'"
        return found, _NO_LIBRARY, "package the model without a name of its own, or with the name 'model'"
    spec, platform = compiled.call_spec, each.context.platform
    if spec is not None and spec.fault and not (platform is not None and is_older(platform, "26.05")):
        words = f'Failed to parse input call specification for model "{each.model.name}".'
        fix = "export a module whose forward takes and returns tensors, or dictionaries, lists and tuples of tensors"
        return f"has a call specification that the backend rejects: {spec.fault}", words, fix
    return None
