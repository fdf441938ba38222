"""The package `cdk_triton.triton` as a whole."""

from __future__ import annotations

import subprocess
import sys

import cdk_triton.triton


def test_it_is_imported_without_what_it_does_not_need() -> None:
    program = (
        "import sys, cdk_triton.triton; "
        "print(*sorted({name.partition('.')[0] for name in sys.modules} & "
        "{'aws_cdk', 'jsii', 'constructs', 'grpc', 'numpy', 'boto3', 'botocore', 'tritonclient'}))"
    )
    result = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert result.stdout.split() == []


def test_public_names_exist_and_are_sorted() -> None:
    names = cdk_triton.triton.__all__
    assert names == sorted(names, key=lambda name: (not name.isupper(), name.islower(), name))
    assert all(hasattr(cdk_triton.triton, name) for name in names)
