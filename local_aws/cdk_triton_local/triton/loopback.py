"""Keeps tritonserver on the loopback interface and for its user, which no option of its SageMaker endpoint does.

A small library in C (`loopback.c`, with `shared_memory.c`) is compiled once per user and preloaded into the server.
The kernel's list of listening sockets then shows whether it works.
"""

from __future__ import annotations

import contextlib
import hashlib
import ipaddress
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from cdk_triton.artifacts import cache_directory
from cdk_triton.errors import LocalError
from cdk_triton_local.process import child_environment

__all__ = ["exposed_sockets", "listening_addresses", "loopback_library"]

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_SOURCES = tuple(Path(__file__).with_name(name) for name in ("loopback.c", "shared_memory.c"))
_LISTEN = "0A"  # TCP_LISTEN of the kernel's include/net/tcp_states.h


def loopback_library() -> Path:
    """The compiled library, from the user's cache directory or made now.

    Raises:
        LocalError: there is no C compiler, or it rejects the source.
    """
    source = b"".join(each.read_bytes() for each in _SOURCES)
    key = hashlib.sha256(source + platform.machine().encode()).hexdigest()[:16]
    library = cache_directory() / f"loopback-{key}.so"
    if not library.exists():
        _compile(library)
    return library


def listening_addresses(port: int) -> set[Address]:
    """The local addresses on which something listens at TCP `port`."""
    return {address for address, number, _ in _listening_sockets() if number == port}


def exposed_sockets(pid: int) -> list[str]:
    """`address:port` of each TCP socket on which a process or a descendant listens outside loopback."""
    inodes = {inode for each in _with_descendants(pid) for inode in _socket_inodes(each)}
    return sorted(
        f"{address}:{port}"
        for address, port, inode in _listening_sockets()
        if inode in inodes and not address.is_loopback
    )


def _listening_sockets() -> Iterator[tuple[Address, int, str]]:
    """Address, port and inode of each TCP socket; see proc_pid_net(5)."""
    for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")):
        if not table.exists():  # a kernel without IPv6
            continue
        for line in table.read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTEN:
                address, _, port = fields[1].partition(":")
                yield _address(address), int(port, 16), fields[9]


def _address(text: str) -> Address:
    """The kernel writes an address as hexadecimal words of 32 bits, each in the machine's byte order."""
    packed = bytes.fromhex(text)
    words = [packed[start : start + 4] for start in range(0, len(packed), 4)]
    address = ipaddress.ip_address(b"".join(word[:: -1 if sys.byteorder == "little" else 1] for word in words))
    return getattr(address, "ipv4_mapped", None) or address


def _with_descendants(pid: int) -> set[int]:
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):  # gone meanwhile
                # pid (name) state ppid ...; the name may hold anything, also brackets.
                parents[int(entry.name)] = int((entry / "stat").read_bytes().rpartition(b")")[2].split()[1])
    family, before = {pid}, 0
    while before < len(family):
        before = len(family)
        family |= {child for child, parent in parents.items() if parent in family}
    return family


def _socket_inodes(pid: int) -> Iterator[str]:
    with contextlib.suppress(OSError):  # gone meanwhile
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):  # closed meanwhile
                kind, _, inode = str(descriptor.readlink()).partition(":")
                if kind == "socket":
                    yield inode.strip("[]")


def _compile(library: Path) -> None:
    try:
        library.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=library.parent) as directory:
            made = Path(directory) / library.name
            compiler = subprocess.run(
                ["gcc", "-shared", "-fPIC", "-O2", "-Wall", "-o", made, *_SOURCES, "-ldl"],  # noqa: S607 from the PATH
                env=child_environment(),
                capture_output=True,
                text=True,
                check=False,
            )
            if compiler.returncode != 0:
                raise LocalError(
                    f"gcc cannot compile {_SOURCES[0].name}, without which tritonserver would listen on every network "
                    f"interface; install the C library's headers with: apt-get install gcc libc6-dev\n{compiler.stderr}"
                )
            made.replace(library)
    except FileNotFoundError:
        raise LocalError(
            "gcc is missing, so the local AWS cannot compile the library without which tritonserver would listen on "
            "every network interface; install gcc with: apt-get install gcc libc6-dev"
        ) from None
    except OSError as error:
        raise LocalError(
            f"{library} cannot be written: {error.strerror}; free some space, or set XDG_CACHE_HOME to another place"
        ) from error
