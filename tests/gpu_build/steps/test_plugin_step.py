"""A network with an operator that TensorRT does not have, and no plugin for it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.gpu_build.conftest import tiny_step

from build_program.step import BuildError
from build_program.tensorrt import build
from build_program.work import BuildWork

if TYPE_CHECKING:
    from golden_messages import Messages

# What trtexec 8.0.3 prints: NVIDIA/TensorRT, issue 1775.
TRTEXEC = """#!/bin/sh
cat << 'END'
[02/03/2022-06:14:51] [I] [TRT] No importer registered for op: FastNms. Attempting to import as plugin.
[02/03/2022-06:14:51] [I] [TRT] Searching for plugin: FastNms, plugin_version: 1, plugin_namespace:
[02/03/2022-06:14:51] [E] [TRT] 3: getPluginCreator could not find plugin: FastNms version: 1
[8] Assertion failed: creator && "Plugin not found, are the plugin name, version, and namespace correct?"
[02/03/2022-06:14:51] [E] Failed to parse onnx file
END
exit 1
"""


@pytest.mark.parametrize("plugins", [[], ["tiny/libother.so"]], ids=["no library", "another library"])
def test_an_operator_without_a_plugin_is_named(
    messages: Messages,
    make_work: Callable[..., BuildWork],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    plugins: list[str],
) -> None:
    program = tmp_path / "bin/trtexec"
    program.parent.mkdir()
    program.write_text(TRTEXEC)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    work = make_work(tmp_path / "repository")
    work.probed = {**work.probed, "tensorrt": "8.6.1.6"}
    with messages.raises(BuildError):
        build(tiny_step(plugins=plugins, parity=None), work)
