"""`cdk-triton estimate`: traces, the policies of an app, prices, and the report."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from cdk_triton.cli.estimate.price import Price, of_api
from cdk_triton.cli.estimate.trace import read_trace, shape

if TYPE_CHECKING:
    from tests.cli.conftest import Outcome

    from golden_messages import Messages

Run = Callable[..., "Outcome"]
SNAPSHOTS = Path(__file__).parents[2] / "snapshots"
RATE = ["--requests-per-second", "10", "--price-per-hour", "1.5"]


def assembly(directory: Path, template: dict[str, Any]) -> Path:
    """A cloud assembly of one stack."""
    artifact = {"type": "aws:cloudformation:stack", "properties": {"templateFile": "stack.json"}}
    directory.mkdir()
    (directory / "manifest.json").write_text(json.dumps({"artifacts": {"TwoEnsembles": artifact}}))
    (directory / "stack.json").write_text(json.dumps(template))
    return directory


@pytest.fixture(autouse=True)
def prices(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of cached prices."""
    directory = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(directory))
    monkeypatch.delenv("CDK_TRITON_NO_CACHE", raising=False)
    return directory / "cdk-triton" / "prices.json"


@pytest.fixture
def app(tmp_path: Path) -> Path:
    return assembly(tmp_path / "cdk.out", json.loads((SNAPSHOTS / "TwoEnsembles.template.json").read_text()))


def test_a_shape_is_a_week_of_hours_in_utc() -> None:
    found = shape("mon-fri 9-17=40, sat 10-12=5, else=2")

    day = 24 * 60
    assert found.minutes == 7 * day
    requests = found.requests["all"]
    assert (requests[9 * 60 - 1], requests[9 * 60], requests[17 * 60]) == (120, 2400, 120)
    assert (requests[5 * day + 10 * 60], requests[6 * day + 10 * 60]) == (300, 120)


def test_days_of_a_shape_go_around_the_week() -> None:
    requests = shape("sat-mon 0-1=1").requests["all"]

    assert [requests[day * 24 * 60] for day in range(7)] == [60, 0, 0, 0, 0, 60, 60]


def test_pages_of_one_metric_are_joined(tmp_path: Path) -> None:
    pages = [{"Id": "m1", "Label": "I", "Timestamps": [f"2026-01-05T00:0{n}Z"], "Values": [1.0]} for n in range(2)]
    (tmp_path / "export.json").write_text(json.dumps({"MetricDataResults": pages}))

    assert read_trace(tmp_path / "export.json").requests == {"I": (1.0, 1.0)}


def test_a_csv_has_a_column_for_each_ensemble_and_the_requests_of_each_period(tmp_path: Path) -> None:
    file = tmp_path / "trace.csv"
    file.write_text("time,text,image\n2026-01-05T00:00Z,300,0\n2026-01-05T00:05Z,0,50\n")

    found = read_trace(file)

    assert found.requests == {"text": (60.0,) * 5 + (0.0,) * 5, "image": (0.0,) * 5 + (10.0,) * 5}
    assert found.total == (60.0,) * 5 + (10.0,) * 5


@pytest.mark.parametrize("form", ["statistics", "data"])
def test_an_export_of_cloudwatch_is_read_in_any_order_and_with_gaps(tmp_path: Path, form: str) -> None:
    times = ["2026-01-05T00:03:00+00:00", "2026-01-05T00:00:00+00:00", "2026-01-05T00:01:00+00:00"]
    points = [{"Timestamp": time, "Sum": 10.0, "Unit": "None"} for time in times]
    data = {"Id": "m1", "Label": "Invocations", "Timestamps": times, "Values": [10.0] * 3}
    documents = {
        "statistics": {"Label": "Invocations", "Datapoints": points},
        "data": {"MetricDataResults": [data]},
    }
    (tmp_path / "export.json").write_text(json.dumps(documents[form]))

    assert read_trace(tmp_path / "export.json").requests == {"Invocations": (10.0, 10.0, 0.0, 10.0)}


def test_the_policies_of_an_app_stand_beside_those_that_are_written(run: Run, app: Path) -> None:
    written = ["--policy", "min=2 max=2", "--instance-type", "ml.g4dn.12xlarge"]

    found = run(
        "estimate", *RATE, "--shape", "9-17=30", "--gpu-percent", "70", "--app", app, *written, "--format", "json"
    )

    assert found.status == 0, found.err
    document = json.loads(found.out)
    of_app, fixed = document["estimates"]
    assert document["heading"] == "a model, not AWS"
    assert (of_app["policy"], of_app["instance_type"]) == ("TwoEnsembles/EndpointEEF1FD8F/AllTraffic", "ml.g5.2xlarge")
    assert of_app["instances_at_most"] == 4
    assert (fixed["instance_hours"], fixed["gpu_hours"], fixed["cost_usd"]) == (336, 336 * 4, 504)
    assert document["notes"] == ["--price-per-hour is the price of each type: ml.g4dn.12xlarge, ml.g5.2xlarge"]


def test_the_variants_of_an_endpoint_share_its_requests_and_have_a_sum(run: Run, app: Path) -> None:
    template = json.loads((app / "stack.json").read_text())
    (config,) = [each for each in template["Resources"].values() if each["Type"] == "AWS::SageMaker::EndpointConfig"]
    (variant,) = config["Properties"]["ProductionVariants"]
    fixed = [
        {**variant, "VariantName": name, "InitialInstanceCount": 1, "InitialVariantWeight": weight}
        for name, weight in (("Old", 3), ("New", 1))
    ]
    config["Properties"]["ProductionVariants"] = fixed
    (app / "stack.json").write_text(json.dumps(template))

    document = json.loads(run("estimate", *RATE, "--shape", "0-24=20", "--app", app, "--format", "json").out)
    text = run("estimate", *RATE, "--shape", "0-24=20", "--app", app).out

    # 15 and 5 of 20 requests per second, where each instance answers 10
    assert [each["over_capacity"] for each in document["estimates"]] == [pytest.approx(5 / 15, abs=1e-6), 0]
    assert [each["cost_usd_per_month"] for each in document["estimates"]] == [1095, 1095]
    (total,) = [line.split("  ") for line in text.splitlines() if "EndpointEEF1FD8F, all variants" in line]
    assert [cell.strip() for cell in total if cell][2:] == ["2", "336.0", "336.0", "504.00", "2,190.00", "25.00%"]


def two_variants(template: dict[str, Any]) -> dict[str, Any]:
    """The template with two unscaled variants; returns the properties of the endpoint's configuration."""
    (config,) = [each for each in template["Resources"].values() if each["Type"] == "AWS::SageMaker::EndpointConfig"]
    properties: dict[str, Any] = config["Properties"]
    (variant,) = properties["ProductionVariants"]
    properties["ProductionVariants"] = [
        {**variant, "VariantName": name, "InitialInstanceCount": 1} for name in ("Old", "New")
    ]
    return properties


def test_the_sum_of_an_endpoint_says_how_many_variants_it_has(run: Run, app: Path) -> None:
    template = json.loads((app / "stack.json").read_text())
    properties = two_variants(template)
    serverless = {"VariantName": "Small", "ModelName": "m", "ServerlessConfig": {"MemorySizeInMB": 1024}}
    properties["ProductionVariants"].append(serverless)
    (app / "stack.json").write_text(json.dumps(template))

    text = run("estimate", *RATE, "--shape", "0-24=20", "--app", app).out

    assert "EndpointEEF1FD8F, 2 of 3 variants" in text
    assert "all variants" not in text


def test_stacks_of_one_name_in_two_regions_are_two_endpoints(run: Run, app: Path) -> None:
    template = json.loads((app / "stack.json").read_text())
    two_variants(template)
    (app / "stack.json").write_text(json.dumps(template))
    artifacts = {
        f"{place}Search": {
            "type": "aws:cloudformation:stack",
            "environment": f"aws://unknown-account/{region}",
            "displayName": f"{place}/Search (Search)",
            "properties": {"templateFile": "stack.json", "stackName": "Search"},
        }
        for place, region in (("Europe", "eu-central-1"), ("America", "us-east-1"))
    }
    (app / "manifest.json").write_text(json.dumps({"artifacts": artifacts}))

    text = run("estimate", *RATE, "--shape", "0-24=20", "--app", app).out

    totals = [line.split("  ") for line in text.splitlines() if "all variants" in line]
    assert [[cell.strip() for cell in line if cell][:3] for line in totals] == [
        [f"{place}/Search/EndpointEEF1FD8F, all variants", "one endpoint", "2"] for place in ("Europe", "America")
    ]


def test_policies_of_the_app_that_are_left_out_are_named(
    run: Run, app: Path, monkeypatch: pytest.MonkeyPatch, messages: Messages
) -> None:
    monkeypatch.chdir(app.parent)
    beside = run("estimate", *RATE, "--shape", "9-17=1", "--policy", "min=1", "--app", "cdk.out")
    alone = run("estimate", *RATE, "--shape", "9-17=1", "--policy", "min=1")
    assert "--policy is given" not in beside.out
    assert alone.status == 0
    messages.record("cdk-triton estimate", alone.out.splitlines()[-1])


def test_a_trace_with_ensembles_compares_one_endpoint_with_several(run: Run, tmp_path: Path) -> None:
    light, heavy = tmp_path / "light.csv", tmp_path / "heavy.csv"
    for file, requests in ((light, 3600), (heavy, 36_000)):
        file.write_text(
            "time,a,b\n" + "".join(f"2026-01-05T{hour:02}:00Z,{requests},{requests}\n" for hour in range(24))
        )

    half = run("estimate", *RATE, "--trace", light, "--policy", "min=1 max=8")
    nothing = run("estimate", *RATE, "--trace", heavy, "--policy", "min=1 max=8")
    over = run("estimate", *RATE, "--trace", heavy, "--policy", "min=1")

    assert "min=1 max=8: one multi-model endpoint costs 50% less than 2 endpoints" in half.out.splitlines()
    assert "costs 50% less" not in nothing.out
    assert "50% less than 2 endpoints and it is over capacity more often" in over.out
    assert half.out.startswith("a model, not AWS")
    assert "price: 1.5 USD per instance hour (--price-per-hour, 20" in half.out


def test_the_most_instances_of_several_endpoints_are_those_of_one_time(run: Run, tmp_path: Path) -> None:
    rows = [(hour, 144_000 if hour < 6 else 0, 144_000 if hour >= 18 else 0) for hour in range(24)]
    alone, both = tmp_path / "alone.csv", tmp_path / "both.csv"
    alone.write_text("time,a\n" + "".join(f"2026-01-05T{hour:02}:00Z,{a}\n" for hour, a, _ in rows))
    both.write_text("time,a,b\n" + "".join(f"2026-01-05T{hour:02}:00Z,{a},{b}\n" for hour, a, b in rows))

    def most(trace: Path) -> list[int]:
        out = run("estimate", *RATE, "--trace", trace, "--policy", "min=1 max=8", "--format", "json").out
        return [each["instances_at_most"] for each in json.loads(out)["estimates"]]

    assert most(alone) == [8]
    assert most(both) == [8, 9]  # the other endpoint then has one instance


@pytest.mark.slow
def test_a_picture_says_that_it_is_a_model(run: Run, tmp_path: Path) -> None:
    plot = tmp_path / "estimate.svg"

    found = run("estimate", *RATE, "--shape", "9-17=30", "--policy", "min=1 max=4", "--plot", plot)

    assert found.status == 0, found.err
    assert "a model, not AWS" in plot.read_text()
    assert list(tmp_path.iterdir()) == [plot]


@pytest.mark.slow
def test_a_picture_that_cannot_be_replaced_leaves_no_part(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fails)

    found = run("estimate", *RATE, "--shape", "9-17=1", "--policy", "min=1", "--plot", tmp_path / "estimate.svg")

    assert (found.status, list(tmp_path.iterdir())) == (1, [])


def test_what_the_model_omits_is_named(run: Run, tmp_path: Path) -> None:
    template = json.loads((SNAPSHOTS / "Search.template.json").read_text())

    found = run("estimate", *RATE, "--shape", "9-17=30", "--app", assembly(tmp_path / "out", template))

    assert found.status == 0, found.err
    assert "which follows SageMakerVariantConcurrentRequestsPerModelHighResolution" in found.out


def test_a_utilization_that_no_policy_follows_is_named(run: Run) -> None:
    found = run("estimate", *RATE, "--shape", "9-17=1", "--policy", "min=1 max=2", "--gpu-percent", "60")

    assert (found.status, found.out.splitlines()[-1]) == (0, "--gpu-percent is not used: no policy follows the GPU")


def product(component: str, price: str) -> str:
    dimension = {"pricePerUnit": {"USD": price}}
    terms = {"OnDemand": {"term": {"priceDimensions": {"one": dimension}}}}
    attributes = {"component": component, "instanceName": "ml.g5.xlarge"}
    return json.dumps({"product": {"attributes": attributes}, "terms": terms})


class Pricing:
    """The Price List API, with these products."""

    def __init__(self, *products: str) -> None:
        self.products = products
        self.asked: list[Any] = []

    def get_products(self, **arguments: Any) -> dict[str, Any]:
        self.asked.append(arguments)
        return {"PriceList": list(self.products)}


def test_a_price_of_the_api_is_that_of_hosting_with_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    pricing = Pricing(product("Training", "9"), product("Hosting", "1.75"))
    monkeypatch.setattr(boto3, "client", lambda *_, **__: pricing)

    found = of_api("ml.g5.xlarge", "eu-central-1")

    assert isinstance(found, Price)
    assert found.per_hour == 1.75
    assert found.source.startswith("AWS Price List API, AmazonSageMaker, ml.g5.xlarge in eu-central-1, 20")
    assert {"Type": "TERM_MATCH", "Field": "regionCode", "Value": "eu-central-1"} in pricing.asked[0]["Filters"]


def test_a_price_is_asked_for_once_a_day(monkeypatch: pytest.MonkeyPatch, prices: Path) -> None:
    pricing = Pricing(product("Hosting", "1.75"))
    monkeypatch.setattr(boto3, "client", lambda *_, **__: pricing)

    def ask() -> Any:
        return of_api("ml.g5.xlarge", "eu-central-1")

    first, second = ask(), ask()
    assert (first, len(pricing.asked)) == (second, 1)

    pricing.products = (product("Hosting", "2"),)
    kept = json.loads(prices.read_text())
    prices.write_text(json.dumps({name: ["2026-01-01", price] for name, (_, price) in kept.items()}))
    assert (ask().per_hour, len(pricing.asked)) == (2, 2)
    prices.write_text("damaged")
    assert (ask().per_hour, len(pricing.asked)) == (2, 3)
    monkeypatch.setenv("CDK_TRITON_NO_CACHE", "1")
    assert (ask().per_hour, len(pricing.asked)) == (2, 4)


@pytest.mark.parametrize("variant", ["scales to zero", "components", "limits of a parameter"])
def test_a_variant_that_is_not_modelled_is_named_with_the_reason(
    messages: Messages, run: Run, app: Path, monkeypatch: pytest.MonkeyPatch, variant: str
) -> None:
    monkeypatch.setenv("COLUMNS", "600")
    template = json.loads((app / "stack.json").read_text())
    resources = template["Resources"].values()
    (target,) = [each for each in resources if each["Type"] == "AWS::ApplicationAutoScaling::ScalableTarget"]
    (config,) = [each for each in resources if each["Type"] == "AWS::SageMaker::EndpointConfig"]
    if variant == "components":
        del config["Properties"]["ProductionVariants"][0]["ModelName"]
    else:
        target["Properties"]["MinCapacity"] = 0 if variant == "scales to zero" else {"Ref": "Least"}
    (app / "stack.json").write_text(json.dumps(template))

    alone = run("estimate", *RATE, "--shape", "9-17=1", "--app", app)
    beside = run("estimate", *RATE, "--shape", "9-17=1", "--app", app, "--policy", "min=1")

    assert (alone.status, alone.out) == (2, "")
    messages.record("cdk-triton estimate", alone.said.replace(str(app), "cdk.out"))
    assert beside.status == 0
    assert "not modelled: TwoEnsembles/EndpointEEF1FD8F/AllTraffic, because" in beside.out


def test_without_one_price_the_estimate_has_no_cost(
    messages: Messages, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = Pricing(product("Hosting", "1"), product("Hosting", "2"))
    monkeypatch.setattr(boto3, "client", lambda *_, **__: two)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    arguments = ["--requests-per-second", "10", "--shape", "9-17=1", "--policy", "min=1", "--instance-type"]

    found = run("estimate", *arguments, "ml.g5.xlarge")

    assert found.status == 0
    messages.record("cdk-triton estimate", found.out.splitlines()[-1])


def test_the_local_aws_has_no_prices(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    arguments = ["--requests-per-second", "10", "--shape", "9-17=1", "--policy", "min=1", "--instance-type"]

    found = run("estimate", *arguments, "ml.g5.xlarge")

    assert (found.status, found.out.splitlines()[-1]) == (0, "the local AWS has no prices: add --price-per-hour")


CASES = {
    "no requests": [],
    "two sources": ["--trace", "a.csv", "--shape", "9-17=1"],
    "a shape of another form": ["--shape", "nine to five"],
    "a period without an end": ["--shape", "17-9=1"],
    "a missing trace": ["--trace", "missing.csv"],
    "a trace without times": ["--trace", "bad.csv"],
    "a trace of uneven seconds": ["--trace", "seconds.csv"],
    "a negative trace": ["--trace", "negative.csv"],
    "an empty trace": ["--trace", "empty.csv"],
    "a time that is too large": ["--trace", "late.csv"],
    "JSON of something else": ["--trace", "other.json"],
    "no app": ["--shape", "9-17=1"],
    "an unknown key": ["--shape", "9-17=1", "--policy", "min=1 maximum=2"],
    "a part of an instance": ["--shape", "9-17=1", "--policy", "min=1.7 max=3"],
    "a part of a minute": ["--shape", "9-17=1", "--policy", "min=1 max=3 out=0.5"],
    "a picture in place of a directory": ["--shape", "9-17=1", "--policy", "min=1", "--plot", "d.svg"],
    "limits that contradict each other": ["--shape", "9-17=1", "--policy", "min=3 max=2"],
    "an unknown instance type": ["--shape", "9-17=1", "--policy", "min=1", "--instance-type", "g5.xlarge"],
    "an empty policy": ["--shape", "9-17=1", "--policy", ""],
    "a price without an end": ["--shape", "9-17=1", "--policy", "min=1", "--price-per-hour", "inf"],
    "an instance type of no policy": ["--shape", "9-17=1", "--instance-type", "ml.g5.xlarge"],
    "a factor of a fixed number": ["--shape", "9-17=1", "--policy", "min=2 safety_factor=0.7 out=3"],
    "a GPU without its utilization": ["--shape", "9-17=1", "--policy", "min=1 max=2 gpu=50"],
}


@pytest.mark.parametrize("arguments", CASES.values(), ids=CASES)
def test_what_cannot_be_estimated_is_one_sentence(
    messages: Messages, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("d.svg").mkdir()
    Path("bad.csv").write_text("time,a\nmonday,1\ntuesday,2\n")
    Path("seconds.csv").write_text("time,a\n0,1\n90,2\n")
    Path("negative.csv").write_text("time,a\n0,1\n60,-2\n")
    Path("empty.csv").write_text("")
    Path("late.csv").write_text("time,a\n0,1\n99999999999999999999,2\n")
    Path("other.json").write_text('{"Metrics": []}')

    found = run("estimate", *RATE, *arguments)

    assert (found.status, found.out) == (2, "")
    messages.record("cdk-triton estimate", found.said)
