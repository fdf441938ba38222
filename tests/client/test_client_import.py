"""What importing the client costs."""

from __future__ import annotations

import subprocess
import sys


def test_importing_the_client_loads_none_of_the_heavy_libraries() -> None:
    program = (
        "import sys, cdk_triton.client; "
        "print(sorted({'aws_cdk', 'jsii', 'boto3', 'botocore', 'gevent', 'numpy', 'tritonclient'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
