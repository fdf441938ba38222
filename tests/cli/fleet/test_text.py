"""The lines that `cdk-triton fleet` prints."""

from __future__ import annotations

from cdk_triton.cli.fleet import text
from cdk_triton.cli.fleet.publishing import Report


def test_a_warning_of_thousands_of_copies_is_one_line() -> None:
    tenants = [f"tenant-{number}" for number in range(3_000)]
    warnings = {tenant: ["model/config.pbtxt: warning CT235: no priorities; set priority_levels"] for tenant in tenants}
    warnings["tenant-1"] = [*warnings["tenant-1"], "model: warning CT999: \x1b[2J"]

    lines = list(text.report(Report([], [], [], tenants, {}, {}, warnings=warnings, first_code="CT235")))

    assert lines == [
        "warning about tenant-0, tenant-1, tenant-2, tenant-3, tenant-4, tenant-5, tenant-6, tenant-7 and 2,992 more: "
        "model/config.pbtxt: warning CT235: no priorities; set priority_levels",
        "warning about tenant-1: model: warning CT999: \\x1b[2J",
        "    more about a rule: cdk-triton explain CT235",
        "0 published, 3,000 unchanged",
    ]
