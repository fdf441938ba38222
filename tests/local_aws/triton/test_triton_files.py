"""What the host needs of the machine, and what it says where that is missing."""

from __future__ import annotations

import importlib.util
import ipaddress
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cdk_triton.errors import LocalError
from cdk_triton_local.triton import TritonHost, server_files
from cdk_triton_local.triton.loopback import exposed_sockets, listening_addresses, loopback_library
from cdk_triton_local.triton.paths import shell_safe

if TYPE_CHECKING:
    from golden_messages import Messages

BIND = """
import socket, sys
family, address = (socket.AF_INET6, "::") if sys.argv[1] == "6" else (socket.AF_INET, sys.argv[1])
with socket.socket(family) as s:
    s.bind((address, 0))
    print(s.getsockname()[0])
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.parametrize(("asked", "got"), [("0.0.0.0", "127.0.0.1"), ("127.0.0.2", "127.0.0.2"), ("6", "::1")])
def test_a_wildcard_becomes_loopback_and_nothing_else_changes(asked: str, got: str) -> None:
    environment = {"LD_PRELOAD": str(loopback_library())}
    done = subprocess.run(
        [sys.executable, "-c", BIND, asked], env=environment, capture_output=True, text=True, check=False
    )
    if asked == "6" and "Cannot assign" in done.stderr:
        pytest.skip("this machine has no IPv6")
    assert done.stdout.strip() == got, done.stderr


def test_the_library_is_compiled_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = loopback_library()
    assert cache in library.parents
    monkeypatch.setenv("PATH", "/nowhere")
    assert loopback_library() == library


def test_without_gcc_the_host_rejects_with_the_mend(
    messages: Messages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with messages.raises(LocalError):
        TritonHost(None, tmp_path / "host")  # type: ignore[arg-type]  # never gets so far
    TritonHost(None, tmp_path / "host", listen_on_all_interfaces=True).close()  # type: ignore[arg-type]


def test_a_cache_that_cannot_be_written_is_named(messages: Messages, cache: Path) -> None:
    cache.write_text("a file")
    with pytest.raises(LocalError) as caught:
        loopback_library()
    assert f"{cache}/" in str(caught.value)
    messages.record("LocalError", re.sub(r"loopback-\w+", "loopback-KEY", str(caught.value)))


def test_listening_sockets_are_read_from_the_kernel() -> None:
    with socket.create_server(("127.0.0.1", 0)) as here, socket.create_server(("", 0)) as everywhere:
        assert listening_addresses(here.getsockname()[1]) == {ipaddress.ip_address("127.0.0.1")}
        assert listening_addresses(everywhere.getsockname()[1]) == {ipaddress.ip_address("0.0.0.0")}


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "::ffff:0.0.0.0"])
def test_sockets_that_other_machines_reach_are_found_among_descendants(address: str) -> None:
    """A grandchild listens; that on loopback beside it does not count."""
    family = "AF_INET6" if ":" in address else "AF_INET"
    listen = f"""
import socket
near = socket.create_server(("127.0.0.1", 0))
far = socket.socket(socket.{family})
far.bind(("{address}", 0))
far.listen()
print(far.getsockname()[1], flush=True)
input()
"""
    middle = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {listen!r}])"
    with subprocess.Popen(
        [sys.executable, "-c", middle], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        if not port:
            pytest.skip("this machine has no IPv6")
        assert exposed_sockets(process.pid) == [f"{address.removeprefix('::ffff:')}:{port}"]
        assert f":{port}" in "".join(exposed_sockets(os.getpid()))
        process.communicate("\n")


def test_without_nvidia_pytriton_the_extra_is_named(
    messages: Messages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with messages.raises(LocalError):
        server_files.arrange_server_files(tmp_path)


def test_another_python_is_told_which_ones_work(
    messages: Messages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_files, "PYTHON_VERSION", "3.99")
    with messages.raises(LocalError) as caught:
        server_files.arrange_server_files(tmp_path)
    assert "3.11, 3.12" in str(caught.value)
    assert "3.99" in str(caught.value)


def test_a_missing_python_library_is_named_with_its_package(
    messages: Messages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "copy2", lambda source, target: broken_loader(target))
    with pytest.raises(LocalError) as caught:
        server_files.arrange_server_files(tmp_path)
    assert f"libpython{server_files.PYTHON_VERSION}" in str(caught.value)
    messages.record("LocalError", str(caught.value).replace(server_files.PYTHON_VERSION, "VERSION"))


def broken_loader(target: str) -> str:
    """A program that ends as the loader ends one whose library is missing."""
    Path(target).write_text("#!/bin/sh\nexit 127\n")
    Path(target).chmod(0o755)
    return target


def test_a_name_that_a_shell_would_split_gets_another_one(tmp_path: Path, cache: Path) -> None:
    plain, blank = tmp_path / "plain", tmp_path / "with a blank"
    blank.mkdir()
    assert shell_safe(plain) == plain
    other = shell_safe(blank)
    assert " " not in str(other)
    assert other.resolve() == blank
    assert shell_safe(blank) == other


def test_where_no_name_is_safe_the_mend_is_named(
    messages: Messages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "my cache"))
    with messages.raises(LocalError):
        shell_safe(tmp_path / "my directory")
