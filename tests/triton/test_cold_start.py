"""What a check does not wait for: nothing heavy is imported, whatever the repository holds."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sample_repositories import Write

PROGRAM = """
import sys
from cdk_triton.triton import ModelRepository
ModelRepository.from_directory(sys.argv[1]).check()
heavy = {"aws_cdk", "boto3", "grpc", "numpy", "onnx", "subprocess", "tensorrt_rtx", "tritonclient"}
print(sorted(heavy & {*sys.modules}))
"""


def test_a_check_imports_no_framework(write: Write) -> None:
    root = write().root
    done = subprocess.run([sys.executable, "-c", PROGRAM, root], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
