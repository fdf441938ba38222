"""`constructs/` is a source root of this repository, and `constructs` is a distribution that the CDK is built on."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

import constructs
from constructs import Construct

SITE_PACKAGES = Path(sysconfig.get_path("purelib"))


def test_under_pytest_it_is_the_distribution() -> None:
    assert Construct.__module__ == "constructs"
    assert constructs.__file__ is not None
    assert Path(constructs.__file__).is_relative_to(SITE_PACKAGES)


def test_in_a_program_at_the_top_of_the_checkout_it_is_the_distribution(root: Path) -> None:
    # `-c` puts the working directory first on sys.path, as `python app.py` puts the directory of app.py.
    program = "import sys, constructs; assert sys.path[0] == ''; constructs.Construct; print(constructs.__file__)"
    done = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True)
    assert Path(done.stdout.strip()).is_relative_to(SITE_PACKAGES)
