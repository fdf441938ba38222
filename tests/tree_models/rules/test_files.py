"""The rules CT820 to CT824: the files of tree models, those of the libraries in `corpus` among them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sample_repositories import platform_with
from sample_repositories.tree_models import CONFIG, PARAMETER, fil, lightgbm, pickle_of, xgboost_binary, xgboost_json

if TYPE_CHECKING:
    from golden_messages import Messages, Place
    from sample_repositories import Change, Write

CORPUS = Path(__file__).parents[1] / "corpus"
NEWEST = "26.05"  # Treelite 4.6.1

TYPES = {".deprecated": "xgboost", ".json": "xgboost_json", ".tl": "treelite_checkpoint", ".txt": "lightgbm"}
DIMS = {"multi": 3, "random-forest-3": 3, "random-forest-2": 2}
FOUND = {
    # file: the findings without a platform
    "lightgbm-4.7-linear.txt": ["CT823"],
    "lightgbm-classifier.pkl": ["CT822"],
    "sklearn-random-forest.joblib": ["CT822"],
    "sklearn-random-forest.pkl": ["CT822"],
    "treelite-4.8-targets.tl": ["CT823"],
    "xgboost-3.2-categories.ubj": ["CT823"],
    "xgboost-3.2-linear.json": ["CT823"],
    "xgboost-3.2-targets.ubj": ["CT823"],
}
OF_RELEASE = {
    # release: the files that its Treelite does not read, apart from those above
    "23.02": ["xgboost-3.0-binary"],
    "23.11": ["treelite-4.8", "xgboost-3.2"],
    "24.08": ["xgboost-3.2"],
    "25.09": ["xgboost-3.2"],
    "26.05": ["xgboost-3.2-absolute.ubj"],
}


def config_of(name: str) -> str:
    """A sound configuration for a file of the corpus: probabilities of classifiers, values of the others."""
    path = Path(name)
    stem = path.stem.split("-", 2)[-1] if "-" in path.stem else path.stem
    config = CONFIG.replace("dims: 4", "dims: 2") if "categories" in name else CONFIG
    return fil(
        config.replace("dims: 1", f"dims: {DIMS.get(stem, 1)}") + f'default_model_filename: "{name}"\n',
        model_type=TYPES.get(path.suffix, "xgboost_ubj"),
        is_classifier="false",
    )


@pytest.mark.parametrize("name", sorted({path.name for path in CORPUS.iterdir()} - {"predictions.json"}))
def test_a_file_of_todays_libraries_has_only_its_own_findings(messages: Messages, write: Write, name: str) -> None:
    content = (CORPUS / name).read_bytes()
    files: dict[str, Change] = {"model/config.pbtxt": config_of(name), f"model/1/{name}": content}
    repository = write(files, base={})
    codes = [place[0] for place in messages.of(repository.check())]
    assert codes == FOUND.get(name, [])


@pytest.mark.parametrize("release", OF_RELEASE)
def test_the_releases_treelite_reads_a_part_of_the_corpus(messages: Messages, write: Write, release: str) -> None:
    change: dict[str, Change] = {}
    formats = (".deprecated", ".json", ".tl", *[".ubj"] * (release >= "24.10"))
    for path in sorted(CORPUS.iterdir()):
        if path.name in FOUND or path.name == "predictions.json" or path.suffix not in formats:
            continue
        model = path.name.replace(".", "_")
        config = config_of(path.name) + PARAMETER.format("output_class", "false")
        change |= {f"{model}/config.pbtxt": config, f"{model}/1/{path.name}": path.read_bytes()}
    found = write(change, base={}).check("multi", platform_with(release))
    places = messages.of(finding for finding in found if finding.code == "CT824")
    refused = {path.rsplit("/", 1)[-1] for _, path, _ in places}
    files = {path.rsplit("/", 1)[-1] for path in change if "/1/" in path}
    expected = {name for name in files if name.startswith(tuple(OF_RELEASE[release]))}
    if release == "23.02":
        expected |= {name for name in files if name.startswith(("treelite-4", "xgboost-3.2"))}
    assert refused == expected


JSON = ("CT820", "model/1/xgboost.json", "")


@pytest.mark.parametrize(
    ("file", "content", "config", "expected"),
    [
        pytest.param("xgboost.json", b"", fil(), [JSON], id="empty"),
        pytest.param("xgboost.json", b"{}", fil(), [JSON], id="an empty object"),
        pytest.param("xgboost.json", b"<html>", fil(), [JSON], id="a page"),
        pytest.param("xgboost.json", xgboost_json(), fil(), [], id="a model"),
        pytest.param("xgboost.json", b'[{"nodeid": 0, "leaf": 1}]', fil(), [JSON], id="the dump of a model"),
        pytest.param(
            "model.txt",
            b'{"name": "tree", "tree_info": []}',
            fil(model_type="lightgbm"),
            [("CT820", "model/1/model.txt", "")],
            id="the dump of a model of LightGBM",
        ),
        pytest.param(
            "xgboost.json", lightgbm(), fil(), [("CT821", "model/1/xgboost.json", "")], id="a model of LightGBM"
        ),
        pytest.param(
            "xgboost.model",
            (CORPUS / "xgboost-3.2-binary.model").read_bytes(),
            fil(model_type=""),
            [("CT821", "model/1/xgboost.model", "")],
            id="UBJSON under the default name",
        ),
        pytest.param("xgboost.model", xgboost_binary(), fil(model_type=""), [], id="the old binary format"),
        pytest.param(
            "model.txt",
            pickle_of("cuml.ensemble"),
            fil(model_type="lightgbm"),
            [("CT822", "model/1/model.txt", "")],
            id="a pickle of cuML",
        ),
        pytest.param(
            "model.txt",
            pickle_of("pandas.core"),
            fil(model_type="lightgbm"),
            [("CT822", "model/1/model.txt", "")],
            id="a pickle of something",
        ),
        pytest.param(
            "checkpoint.tl",
            pickle_of("xgboost.sklearn"),
            fil(model_type="treelite_checkpoint"),
            [("CT822", "model/1/checkpoint.tl", "")],
            id="a pickle of XGBoost",
        ),
        pytest.param(
            "model.pkl",
            pickle_of("sklearn.ensemble"),
            fil(model_type="treelite_checkpoint"),
            [("CT120", "model/1/checkpoint.tl", "")],
            id="a pickle instead of a checkpoint",
        ),
    ],
)
def test_files(messages: Messages, write: Write, file: str, content: bytes, config: str, expected: list[Place]) -> None:
    files: dict[str, Change] = {"model/config.pbtxt": config, f"model/1/{file}": content}
    repository = write(files, base={})
    assert messages.of(repository.check()) == expected


@pytest.mark.parametrize("name", ["model.joblib", "model.pkl", "checkpoint.tl"])
def test_a_pickle_is_named_with_the_command_that_converts_it(write: Write, name: str) -> None:
    """With the release's Treelite, where the release is known, and for files of joblib under any name."""
    config = fil(model_type="treelite_checkpoint", output_class="false")
    files: dict[str, Change] = {"model/config.pbtxt": config, f"model/1/{name}": pickle_of("sklearn.ensemble")}
    (finding,) = write(files, base={}).check(platform=platform_with("25.09"))
    assert finding.fix == (
        'run this in model/1, and write model_type "treelite_checkpoint": python -c "import joblib, treelite; '
        f"treelite.sklearn.import_model(joblib.load('{name}')).serialize('checkpoint.tl')\", with treelite==4.4.1 "
        "installed"
    )


@pytest.mark.parametrize(
    ("release", "content", "allowed", "is_read"),
    [
        pytest.param("22.12", {"parameters": {"boost_from_average": "1"}}, "", False, id="XGBoost 1.7 before 23.01"),
        pytest.param("23.01", {"parameters": {"boost_from_average": "1"}}, "", True, id="XGBoost 1.7 with 23.01"),
        pytest.param("23.10", {"model": {"iteration_indptr": [0]}}, "", False, id="XGBoost 2.0 before 23.11"),
        pytest.param("23.10", {"model": {"iteration_indptr": [0]}}, "true", True, id="unknown fields are allowed"),
        pytest.param("23.11", {"model": {"iteration_indptr": [0]}}, "", True, id="XGBoost 2.0 with 23.11"),
        pytest.param("25.12", {"model": {"cats": {"enc": []}}}, "", False, id="XGBoost 3.1 before 26.01"),
        pytest.param("25.12", {"model": {"cats": {"enc": []}}}, "true", False, id="which does not help"),
        pytest.param("26.01", {"model": {"cats": {"enc": []}}}, "", True, id="XGBoost 3.1 with 26.01"),
        pytest.param("26.06", {"model": {"cats": {}, "weight_drop": [1]}}, "", False, id="DART of XGBoost 3.4"),
        pytest.param("26.06", {"objective": "reg:quantileerror"}, "", False, id="an objective"),
        pytest.param("26.11", {"objective": "reg:quantileerror"}, "", True, id="a release that nobody has read"),
        pytest.param("26.06", {"objective": "survival:aft"}, "", True, id="a known objective"),
    ],
)
def test_what_a_release_reads(
    messages: Messages,
    write: Write,
    release: str,
    content: dict[str, object],
    allowed: str,
    *,
    is_read: bool,
) -> None:
    given = {"version": (), **content}
    config = fil(is_classifier="false", output_class="false", xgboost_allow_unknown_field=allowed)
    files: dict[str, Change] = {"model/config.pbtxt": config, "model/1/xgboost.json": xgboost_json(**given)}  # type: ignore[arg-type]
    found = messages.of(write(files, base={}).check(platform=platform_with(release)))
    assert [code for code, *_ in found if code.startswith("CT82")] == ([] if is_read else ["CT824"])


def test_an_image_of_ones_own_may_have_another_treelite(write: Write) -> None:
    from cdk_triton.sagemaker import ServingPlatform
    from sample_repositories.examples import OWN_IMAGE

    platform = ServingPlatform(release="25.09", instance_type="ml.g5.xlarge", image=OWN_IMAGE)
    model = xgboost_json(model={"cats": {"enc": []}})
    assert write({"model/config.pbtxt": fil(), "model/1/xgboost.json": model}, base={}).check(platform=platform) == ()


def test_a_long_name_of_a_file_is_cut_and_has_no_control_characters(write: Write) -> None:
    content = xgboost_json(objective="reg:x\n\x1b[31m" + "y" * 3_000)
    repository = write({"model/config.pbtxt": fil(), "model/1/xgboost.json": content}, base={})
    (found,) = repository.check("multi", platform_with("26.06"))
    assert found.code == "CT824"
    assert str(found).isprintable()
    assert len(str(found)) < 500
