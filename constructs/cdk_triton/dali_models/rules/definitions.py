"""CT870 to CT873: whether the DALI backend can serialise a definition, and load a serialised pipeline."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from cdk_triton._wording import listed_in_quotes
from cdk_triton.checks.registry import Problem
from cdk_triton.checks.sources import backend
from cdk_triton.dali_models.models import DaliPipelineFile, Defined, defined_rule, pipeline_rule
from cdk_triton.python_models.modules import provided_modules
from cdk_triton.python_models.reader.source import SyntaxFault
from cdk_triton.triton.findings import Severity
from cdk_triton.triton.unreadable import Unreadable

_PROVIDER = "src/model_provider/model_provider.h"
_ONE = "Precisely one autoserialize function must exist in the module. Found"


@pipeline_rule(
    "CT870",
    Severity.ERROR,
    "the file of a DALI model is neither a serialised pipeline nor Python",
    source=backend("dali_backend", "src/dali_model.h", 178, 247),
)
def unreadable_pipeline(each: DaliPipelineFile) -> Iterator[Problem]:
    """`model.dali` is empty or something else, or the container's Python rejects `dali.py`.

    The backend first tries to load a serialised pipeline from `model.dali`, or from the file that
    `default_model_filename` names. Then it runs the image's `python3` to serialise the pipeline of `dali.py`. If
    neither works, the server does not load the model.

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
        def pipeline()
            images = fn.decoders.image(fn.external_source(name="IMAGE"), device="mixed")
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

    Limits:
        The rule skips syntax that the container's Python may have, and the Python that runs the checks does not.
    """
    content = each.content
    if isinstance(content, SyntaxFault):
        yield each.failing(content.line, f"is not valid Python ({content.reason})", content.error, "correct the line")
    elif isinstance(content, Unreadable) and each.path.suffix != ".py":
        locations = ", ".join(map(str, (each.owner.path, *each.owner.alternatives)))
        yield each.failing(
            None,
            f"the file {content.reason}",
            f"Failed to load model file. The program looked in the following locations: {locations}",
            "serialise the pipeline again with the DALI of the release, or replace the file by dali.py",
        )


@defined_rule(
    "CT871",
    Severity.ERROR,
    "a DALI model does not have exactly one pipeline to serialise",
    source=backend("dali_backend", _PROVIDER, 86, 142),
)
def not_one_pipeline(each: Defined) -> Iterator[Problem]:
    """In `dali.py`, exactly one function must have the decorator `@autoserialize`.

    The backend looks for this function, calls it, and serialises the pipeline that it returns. Without the function, or
    with two of them, the server does not load the model. If the recipe `DaliPipeline` makes the file, the decorator may
    be missing, but the recipe's file must then have exactly one function with `@pipeline_def`.

    Example:
        # model/config.pbtxt
        backend: "dali"
        max_batch_size: 8
        input { name: "IMAGE" data_type: TYPE_UINT8 dims: -1 }
        output { name: "OUT" data_type: TYPE_FP32 dims: [ 3, 224, 224 ] }
        # model/1/dali.py
        from nvidia.dali import fn, pipeline_def

        @pipeline_def(batch_size=8, num_threads=1, device_id=0)
        def pipeline():
            images = fn.decoders.image(fn.external_source(name="IMAGE"), device="mixed")
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

    Limits:
        The rule looks only at functions at the top of the file. It does not report a missing decorator if the file
        imports modules other than DALI, numpy and Python's own.
    """
    file, found = each.file, each.definition
    if len(found.marked) > 1:
        names = listed_in_quotes([one.name for one in found.marked])
        yield file.failing(
            found.marked[1].line,
            f"has the second function with @autoserialize ({names})",
            f"{_ONE} {len(found.marked)}",
            "keep @autoserialize on the function to serve, and remove it from the others",
        )
    elif found.is_unmarked and not file.is_built:
        yield file.failing(
            None,
            "no function has @autoserialize",
            f"{_ONE} none.",
            "write @autoserialize of nvidia.dali.plugin.triton above @pipeline_def of the function to serve",
        )
    elif found.is_unmarked and found.is_undefined:
        yield file.failing(
            None,
            "no function has @pipeline_def",
            "there is no pipeline to serialise",
            "write @pipeline_def of nvidia.dali above the function that defines the pipeline",
        )
    elif found.is_unmarked and len(found.defined) > 1:
        names = listed_in_quotes([one.name for one in found.defined])
        yield file.failing(
            found.defined[1].line,
            f"has the second function with @pipeline_def ({names})",
            "none of them has @autoserialize",
            "write @autoserialize of nvidia.dali.plugin.triton above @pipeline_def of the function to serve",
        )


@defined_rule(
    "CT872",
    Severity.ERROR,
    "DALI cannot serialise the pipeline of a definition",
    source=backend("dali_backend", _PROVIDER, 86, 142),
)
def failing_definition(each: Defined) -> Iterator[Problem]:
    """The function with `@autoserialize` fails when the backend calls it, or returns what DALI cannot serialise.

    The decorator must be above `@pipeline_def`, because it marks a pipeline and not a function. The backend calls the
    function without arguments, so each argument needs a default. The function must return at least one output, and
    several outputs as a tuple, not as a list. DALI serialises only its own operators, not a Python function
    (`fn.python_function`).

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
        def pipeline(size):
            images = fn.decoders.image(fn.external_source(name="IMAGE"), device="mixed")
            return fn.crop_mirror_normalize(images, crop=(size, size))

    Instead:
        # model/1/dali.py
        from nvidia.dali import fn, pipeline_def
        from nvidia.dali.plugin.triton import autoserialize

        @autoserialize
        @pipeline_def(batch_size=8, num_threads=1, device_id=0)
        def pipeline(size=224):
            images = fn.decoders.image(fn.external_source(name="IMAGE"), device="mixed")
            return fn.crop_mirror_normalize(images, crop=(size, size))

    Limits:
        The rule does not know the operators and arguments of DALI. The build of the recipe `DaliPipeline` serialises
        the pipeline with the release's DALI, and finds every fault.
    """
    for failure in each.definition.failures:
        yield each.file.failing(failure.line, failure.found, failure.said, failure.fix)


@defined_rule(
    "CT873",
    Severity.ERROR,
    "the definition of a DALI pipeline uses a name or module that is missing",
    source=backend("dali_backend", _PROVIDER, 86, 142),
)
def missing_name(each: Defined) -> Iterator[Problem]:
    """`dali.py` uses a name that it neither defines nor imports, or imports a module that Python does not find.

    The backend imports `dali.py` alone: the directory of the file is not among those in which Python looks for modules,
    and the file is not a part of a package. So put helper functions into `dali.py`. Beside DALI, numpy and the standard
    library, the images have few modules. CT166 describes them.

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
            return fn.crop_mirror_normalize(images, crop=(224, 224), dtype=types.FLOAT)

    Instead:
        # model/1/dali.py
        from nvidia.dali import fn, pipeline_def, types
        from nvidia.dali.plugin.triton import autoserialize

        @autoserialize
        @pipeline_def(batch_size=8, num_threads=1, device_id=0)
        def pipeline():
            images = fn.decoders.image(fn.external_source(name="IMAGE"), device="mixed")
            return fn.crop_mirror_normalize(images, crop=(224, 224), dtype=types.FLOAT)

    Limits:
        Like CT169, the rule checks only uses that are certain to run. It does not know the names in DALI's modules. It
        skips imports if the file or the container's environment changes where Python looks for modules. It knows the
        modules of your own image only if `image_modules` in `cdk-triton.toml` lists them.
    """
    file = each.file
    for used in each.definition.undefined:
        yield file.failing(
            used.line,
            f"uses {used.name!r}, which the file neither defines nor imports",
            f"NameError: name {used.name!r} is not defined",
            "define or import this name",
        )
    yield from _missing_modules(each)


def _missing_modules(each: Defined) -> Iterator[Problem]:
    file, context = each.file, each.file.owner.context
    has_path = context.environment is not None and "PYTHONPATH" in context.environment.variables
    files, provided = file.owner.files, provided_modules(context)
    for imported in each.definition.imports:
        if imported.level:
            said = "ImportError: attempted relative import with no known parent package"
        else:
            top = imported.module.partition(".")[0]
            beside = file.path.parent / top
            is_own = files.has(PurePosixPath(f"{beside}.py")) or files.has_directory(beside)
            if has_path or each.definition.changes_path or top in ("nvidia", "numpy"):
                continue
            said = f"ModuleNotFoundError: No module named {top!r}"
            if not is_own:
                if provided is not None and top not in provided:
                    found = f"imports {top!r}, which the image does not have"
                    fix = "use operators of DALI, or run this code in a Python model"
                    yield file.failing(imported.line, found, said, fix)
                continue
        yield file.failing(
            imported.line,
            "imports a file beside it, which Python does not find",
            said,
            "move what the file needs into it",
        )
