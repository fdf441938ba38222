"""The `cdk-triton` command: the only part of the library that prints and exits.

Exit status: 0 done; 1 a report with errors on stdout, or the work failed and the last line on stderr has the reason; 2
an argument, or the directory that it names, cannot be used; 70 a fault of cdk-triton itself; 130 interrupted with
Ctrl-C.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line and exit; Ctrl-C also ends the imports before it without a traceback."""
    try:
        from cdk_triton.cli.program import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)
