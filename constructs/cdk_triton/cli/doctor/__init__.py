"""`cdk-triton doctor`: finds the faults for which a first deployment would fail.

A check is a function that looks at one thing and gives one `Answer`. Those of `workstation` look at this machine, those
of `account` and `capacity` call AWS, with the caller's own permissions; nothing is changed anywhere. boto3 is imported
when the command runs: `--help` has no use for it.
"""

from __future__ import annotations

from cdk_triton.cli.doctor.command import doctor

__all__ = ["doctor"]
