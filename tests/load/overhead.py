"""Requests a second of a trivial app, bare under uvicorn and emulated, and the ratio.

Rules: both servers are processes of their own and are up all the time; short rounds alternate
between them, so that whatever else the machine does hits both. The verdict is the median of the
ratios of neighbouring rounds; it has to be at least 0.85, else the exit code is 1. The processor
time each server spent is printed too: that ratio hardly depends on what else the machine does.
"""

import contextlib
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = ["main"]

_REQUIRED: Final = 0.85
_ROUNDS: Final = 20
_REQUESTS: Final = 1000
_CONNECTIONS: Final = 8
_UVICORN: Final = (
    "-m",
    "uvicorn",
    "tests.load.apps:app",
    "--log-level",
    "warning",
    "--no-access-log",
)
_EMULATED: Final = ("-m", "platform_sim.host.server", "--app", "tests.load.apps:app")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def _server(*command: str) -> Iterator[tuple[int, int]]:
    port = _free_port()
    process = subprocess.Popen(
        [sys.executable, *command, "--port", str(port)], stdout=subprocess.DEVNULL
    )
    try:
        _wait_for(port)
        yield port, process.pid
    finally:
        process.terminate()
        process.wait()


def _wait_for(port: int) -> None:
    for _ in range(500):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.02)
    raise SystemExit(f"no server at port {port}")


def _round(port: int) -> float:
    command = [sys.executable, "-m", "tests.load.client", "127.0.0.1"]
    told = subprocess.run(
        [*command, str(port), str(_CONNECTIONS), str(_REQUESTS)],
        check=True,
        capture_output=True,
        text=True,
    )
    return _REQUESTS / float(told.stdout)


def main() -> None:
    """Measure, print and judge."""
    with _server(*_UVICORN) as bare, _server(*_EMULATED) as emulated:
        servers = {"bare": bare, "emulated": emulated}
        for port, _ in servers.values():
            _round(port)  # what is loaded and compiled on first use
        rates: dict[str, list[float]] = {name: [] for name in servers}
        worked_s = {name: -_processor_s(pid) for name, (_, pid) in servers.items()}
        for number in range(_ROUNDS):
            order = list(servers) if number % 2 else list(reversed(servers))
            for name in order:
                rates[name].append(_round(servers[name][0]))
        for name, (_, pid) in servers.items():
            worked_s[name] += _processor_s(pid)
    for name, seen in rates.items():
        each_us = worked_s[name] / (_ROUNDS * _REQUESTS) * 1e6
        print(
            f"{name:<9} {statistics.median(seen):6.0f} requests/s (median of {_ROUNDS} rounds of "
            f"{_REQUESTS}; {min(seen):.0f} to {max(seen):.0f}), {each_us:.0f} us of processor each"
        )
    pairs = zip(rates["emulated"], rates["bare"], strict=True)
    ratio = statistics.median(emulated / bare for emulated, bare in pairs)
    print(
        f"ratio     {ratio:6.3f} of requests/s (required: {_REQUIRED}), "
        f"{worked_s['bare'] / worked_s['emulated']:.3f} by processor time"
    )
    sys.exit(0 if ratio >= _REQUIRED else 1)


def _processor_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
