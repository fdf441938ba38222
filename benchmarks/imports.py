"""How long the two packages that everything else waits for take to import, and that they start no Node.

Each import runs in a fresh interpreter. The interpreter's own start is not counted, it is nobody's here.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from typing import TypedDict

from _figures import progress, report

RUNS = 9
MODULES = ("cdk_triton.client", "cdk_triton.triton")

IMPORT = """
import importlib, sys, time
start = time.perf_counter()
importlib.import_module(sys.argv[1])
seconds = time.perf_counter() - start
foreign = [name for name in ("aws_cdk", "jsii") if name in sys.modules]
import json, psutil
children = [child.name() for child in psutil.Process().children(recursive=True)]
print(json.dumps({"seconds": seconds, "foreign": foreign, "children": children}))
"""


def main() -> None:
    """Measure and report."""
    for module in MODULES:
        progress(f"imports: {module} ...")
        fresh_import(module)  # writes the byte code and warms the disk cache
        runs = [fresh_import(module) for _ in range(RUNS)]
        short = module.removeprefix("cdk_triton.")
        report(f"imports.{short}", statistics.median(run["seconds"] for run in runs), "s", at_most=0.5)
        report(f"imports.{short}.aws_cdk", sum(len(run["foreign"]) for run in runs), "modules", at_most=0)
        report(f"imports.{short}.processes", sum(len(run["children"]) for run in runs), "processes", at_most=0)


class Import(TypedDict):
    """The cost and the effects of one import."""

    seconds: float
    foreign: list[str]
    children: list[str]


def fresh_import(module: str) -> Import:
    """Import a module in a new interpreter."""
    ran = subprocess.run([sys.executable, "-c", IMPORT, module], check=True, capture_output=True, text=True)
    result: Import = json.loads(ran.stdout)
    return result


if __name__ == "__main__":
    main()
