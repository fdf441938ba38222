"""Records the runs that pictures show: the report of the demo, the metrics of a dashboard under load, and a load test.

`python -m tools.record_pictures` runs all of it on this machine, in some minutes, and writes the folder RECORDED. The
generators draw from these files, so `make generate` needs no run. The picture of the load test is the one that
`cdk-triton bench --plot` draws. Record again after a change of the demo, of the dashboard or of that picture.
"""

from __future__ import annotations

import argparse
import json
import os
import pty
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tools.generate import ROOT
from tools.generate._shapes import for_dark_pages
from tools.generate.estimate_picture import SETTINGS
from tools.generate.readme_transcript import read

from cdk_triton_local import LocalAws

RECORDED = ROOT / "tools" / "generate" / "recorded"
PERIOD_SECONDS = 10
STACK, TEXT = "Language", "TEXT=The children play in the garden with the neighbours."
STEADY = ("--rate", "20", "--duration", "90")
SWEEP = ("--rate", "40", "--max-rate", "400", "--duration", "10")


def demo() -> None:
    """Run the demo on a terminal, and keep its report."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "examples.demo"]
    environment = {**os.environ, "COLUMNS": "110", "TERM": "xterm-256color"}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdin=theirs, stdout=theirs, stderr=theirs) as run:
        os.close(theirs)
        shown = b"".join(iter(lambda: read(ours), b""))
    os.close(ours)
    if run.returncode != 0:
        raise SystemExit(f"the demo ended with {run.returncode}:\n{shown.decode()}")
    (RECORDED / "demo.txt").write_text(report_of(shown.decode()), encoding="utf-8")


def report_of(shown: str) -> str:
    """Return the report in the output of the demo, without the lines that were overwritten."""
    lines = [re.sub(r"\x1b\[\d*[KA]|\x1b\[\?25[hl]", "", line) for line in shown.replace("\r", "\n").splitlines()]
    kept = [line.rstrip() for line in lines if not line.endswith(" ...") and " ... " not in line]
    first = next(number for number, line in enumerate(kept) if "==> Invoking" in line)
    last = next(number for number, line in enumerate(kept) if number > first and "  DALI:" in line)
    return re.sub(r"\n{2,}", "\n", "\n".join(kept[first : last + 1])) + "\n"


def load() -> None:
    """Put load on an endpoint, and keep the metrics of its dashboard."""
    with _endpoint() as (aws, project, environment, endpoint):
        begin = datetime.now(UTC)
        _run(["cdk-triton", "bench", endpoint, "--input", TEXT, *STEADY], project, environment)
        dashboard = _dashboard(aws.client, begin, endpoint)
    (RECORDED / "dashboard.json").write_text(f"{json.dumps(dashboard, indent=1)}\n", encoding="utf-8")


def sweep() -> None:
    """Put more and more load on an endpoint, and keep the picture of it."""
    with _endpoint() as (_, project, environment, endpoint):
        (project / "matplotlibrc").write_text(SETTINGS, encoding="utf-8")
        _run(["cdk-triton", "bench", endpoint, "--input", TEXT, *SWEEP, "--plot=sweep.svg"], project, environment)
        picture = (project / "sweep.svg").read_text(encoding="utf-8")
    (ROOT / "docs" / "images" / "sweep.svg").write_text(for_dark_pages(picture), encoding="utf-8")


@contextmanager
def _endpoint() -> Iterator[tuple[LocalAws, Path, Mapping[str, str], str]]:
    """The project of `cdk-triton init`, deployed to a local AWS: its directory, an environment and the endpoint."""
    with tempfile.TemporaryDirectory(prefix="cdk-triton-pictures-") as folder:
        project = Path(folder, STACK.lower())
        _run(["cdk-triton", "init", str(project), "--single"], Path(folder), os.environ)
        stack = project / "stack.py"
        stack.write_text(f"{stack.read_text(encoding='utf-8')}        endpoint.monitor()\n", encoding="utf-8")
        with LocalAws(Path(folder, "local")) as aws:
            search_path = f"{ROOT / 'node_modules/.bin'}:{os.environ['PATH']}"
            environment = {**aws.process_environment(), "PATH": search_path}
            _run(["cdk", "bootstrap"], project, environment)
            _run(
                ["cdk", "deploy", "--all", "--require-approval=never", "--outputs-file=out.json"], project, environment
            )
            outputs = json.loads((project / "out.json").read_text(encoding="utf-8"))[STACK]
            endpoint = next(value for name, value in outputs.items() if "Endpoint" in name)
            yield aws, project, environment, endpoint


def _run(command: Sequence[str], directory: Path, environment: Mapping[str, str]) -> None:
    print("$", *command, flush=True)
    subprocess.run(command, cwd=directory, env=environment, check=True)


def _dashboard(client: Callable[[str], Any], begin: datetime, endpoint: str) -> dict[str, Any]:
    """The widgets of the endpoint's dashboard, each with the values that the local CloudWatch has."""
    cloudwatch = client("cloudwatch")
    (name,) = (each["DashboardName"] for each in cloudwatch.list_dashboards()["DashboardEntries"])
    body = json.loads(cloudwatch.get_dashboard(DashboardName=name)["DashboardBody"])
    span = {"StartTime": begin - timedelta(seconds=PERIOD_SECONDS), "EndTime": datetime.now(UTC)}
    widgets = []
    for widget in body["widgets"]:
        kept = {name: widget[name] for name in ("x", "y", "width", "height", "type")}
        properties = widget.get("properties", {})
        kept["title"] = properties.get("title") or properties.get("markdown", "").splitlines()[0]
        kept["lines"] = list(_lines(cloudwatch, span, properties.get("metrics", ())))
        widgets.append(kept)
    return {"endpoint": endpoint, "period": PERIOD_SECONDS, "begin": begin.isoformat(), "widgets": widgets}


def _lines(cloudwatch: Any, span: Mapping[str, Any], metrics: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """The visible lines of a widget: metrics, and quotients of two metrics or of a metric and a number."""
    looks = [metric[-1] if isinstance(metric[-1], dict) else {} for metric in metrics]
    values = {
        look.get("id", str(number)): _points(cloudwatch, span, metric, look.get("stat", "Average"))
        for number, (metric, look) in enumerate(zip(metrics, looks, strict=True))
        if "expression" not in look
    }
    for number, (metric, look) in enumerate(zip(metrics, looks, strict=True)):
        formula = look.get("expression")
        points = _quotient(formula, values) if formula else values[look.get("id", str(number))]
        if points and look.get("visible", True):
            yield {"label": look.get("label") or metric[1], "points": sorted(points.items())}


def _quotient(expression: str, values: Mapping[str, dict[float, float]]) -> dict[float, float]:
    found = re.fullmatch(r"(\w+) / (\w+)", expression)
    above, below = found.groups() if found else ("", "")
    if below.isdecimal():
        return {moment: value / int(below) for moment, value in values.get(above, {}).items()}
    divisors = values.get(below, {})
    return {t: value / divisors[t] for t, value in values.get(above, {}).items() if divisors.get(t)}


def _points(cloudwatch: Any, span: Mapping[str, Any], metric: Sequence[Any], statistic: str) -> dict[float, float]:
    """Seconds to value; empty for a percentile, which the local AWS does not have."""
    if statistic not in ("Average", "Sum", "Minimum", "Maximum", "SampleCount"):
        return {}
    words = [part for part in metric if isinstance(part, str)]
    found = cloudwatch.get_metric_statistics(
        Namespace=words[0],
        MetricName=words[1],
        Dimensions=[{"Name": name, "Value": value} for name, value in zip(words[2::2], words[3::2], strict=True)],
        Period=PERIOD_SECONDS,
        Statistics=[statistic],
        **span,
    )["Datapoints"]
    return {(each["Timestamp"] - span["StartTime"]).total_seconds(): each[statistic] for each in found}


def main() -> None:
    """Record everything, or one part."""
    parser = argparse.ArgumentParser(description="Record the runs that pictures of docs/ show.")
    parts = {"demo": demo, "load": load, "sweep": sweep}
    parser.add_argument("part", nargs="?", choices=parts, help="record only this; all of them by default")
    part = parser.parse_args().part
    RECORDED.mkdir(exist_ok=True)
    for record in parts.values() if part is None else [parts[part]]:
        record()


if __name__ == "__main__":
    main()
