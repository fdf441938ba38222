"""A user without any right beside those to a directory of their own prepares, builds and deploys."""

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

CHECKOUT = Path(__file__).parents[3]
STRANGER = 65533  # no other test becomes this user
LABELS = "image_classification/resnet50/labels.txt"

# TensorRTTenants is the cheapest stack that has a build.
DEPLOY = """
set -eu
variables="$(cdk-triton local up --detach)"
eval "$variables"
trap 'cdk-triton local down' EXIT
cdk bootstrap
cdk deploy TritonArtifacts TensorRTTenants -c tenants=1 --require-approval=never --outputs-file=outputs.json
cdk destroy --all -c tenants=1 --force
"""

# An interpreter in root's home, as pyenv installs it, shows there in a mount namespace that only the command has.
BECOME_STRANGER = """
set -eu
python="$1" private="$2" kept="$3"
shift 3
if [ -n "$private" ]; then
    mount --bind "$python" "$kept"
    mount -t tmpfs -o mode=755 none "$private"
    mkdir -p "$python"
    mount --bind "$kept" "$python"
fi
exec setpriv --reuid 65533 --regid 65533 --clear-groups "$@"
"""


def private_parent(path: str) -> Path | None:
    """The directory above that other users may not enter; None if there is none."""
    return next((each for each in reversed(Path(path).parents) if not each.stat().st_mode & stat.S_IXOTH), None)


pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user"),
    pytest.mark.skipif(
        private_parent(str(CHECKOUT / "app.py")) is not None, reason="only this user reads the checkout"
    ),
]


def hand_over(directory: Path) -> None:
    """Hand a directory over."""
    for path in (directory, *directory.rglob("*")):
        os.chown(path, STRANGER, STRANGER, follow_symlinks=False)


@pytest.fixture
def home(model_assets: Path) -> Iterator[Path]:
    """A directory of that user, outside of pytest's, which other users may not enter."""
    directory = Path(tempfile.mkdtemp(prefix="stranger-"))
    (directory / "python").mkdir()
    settings = json.loads((CHECKOUT / "cdk.json").read_text())
    settings["app"] = f"{sys.executable} {model_assets.parent / 'app.py'}"
    (directory / "cdk.json").write_text(json.dumps(settings))
    hand_over(directory)
    yield directory
    shutil.rmtree(directory)


def run(home: Path, *command: str) -> str:
    """Standard output and error together of a command of the user that must end well."""
    path = f"{CHECKOUT / 'node_modules/.bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    quiet = {"NODE_NO_WARNINGS": "1", "CDK_VALIDATION": "false", "CI": "true"}
    own = {name: str(home) for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME")}
    private = private_parent(sys.base_prefix)
    become = ["unshare", "--mount", "sh", "-c", BECOME_STRANGER, "sh"]
    become += [sys.base_prefix, str(private or ""), str(home / "python")]
    done = subprocess.run(
        [*become, *command],
        cwd=home,
        env={**os.environ, **own, **quiet, "PATH": path, "PIP_NO_INDEX": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_a_user_without_rights_prepares_the_weights(model_assets: Path, home: Path) -> None:
    assets = Path(shutil.copytree(model_assets, home / "model_assets", ignore=shutil.ignore_patterns("wheels")))
    (assets / LABELS).unlink()
    hand_over(assets)
    printed = run(home, sys.executable, str(assets / "prepare.py"), "--without-wheels")
    assert f"built     {LABELS}" in printed
    assert (assets / LABELS).read_bytes() == (model_assets / LABELS).read_bytes()


def test_a_user_without_rights_builds_deploys_and_leaves_nothing(home: Path) -> None:
    printed = run(home, "bash", "-c", DEPLOY)
    outputs = json.loads((home / "outputs.json").read_text())["TensorRTTenants"]
    assert outputs["Tenant1"].startswith("tenant-1-")
    assert "TensorRTTenants: destroyed" in printed
    processes = [each for each in psutil.process_iter(["uids"]) if each.info["uids"].real == STRANGER]
    _, alive = psutil.wait_procs(processes, timeout=30)
    assert alive == []
