"""`outlast up` in tests: the real command as a process, with its addresses read from its output."""

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3

from tests.support.processes import alive, children, module_process, poll, send

__all__ = ["LocalPlatform", "local_platform", "start_up"]

FREE_PORTS = ("--web-port", "0", "--store-port", "0", "--receiver-port", "0")


@dataclass
class LocalPlatform:
    """A running `outlast up`.

    Attributes:
        process: The command itself.
        lines: What it has printed until it was up.
        urls: Addresses by role.
    """

    process: subprocess.Popen[str]
    lines: list[str]
    urls: dict[str, str]
    children: list[int] = field(default_factory=list)

    @property
    def curl(self) -> str:
        """The line to paste."""
        return next(line for line in self.lines if line.startswith("curl "))

    def pid(self, module: str) -> int:
        """Return the id of the child that runs a module of `platform_sim.host`, once it does."""
        wanted = f"platform_sim.host.{module}".encode()

        def find() -> int:
            for child in children(self.process.pid):
                if wanted in Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0"):
                    return child
            return 0

        return poll(find, what=f"a {module} process")

    def post(self, payload: Any, *, key: str, destination: str = "receiver") -> tuple[int, Any]:
        """Post an operation; return status and content."""
        status, body = send(
            "POST",
            f"{self.urls['web']}/operations",
            json={"destination": destination, "payload": payload},
            headers={"Idempotency-Key": key},
        )
        return status, json.loads(body)

    def ledger(self) -> dict[str, Any]:
        """Return the receiver's ledger."""
        content: dict[str, Any] = json.loads(send("GET", f"{self.urls['receiver']}/_ledger")[1])
        return content

    def states(self) -> dict[str, str]:
        """Return the state of every marker, read with plain boto3."""
        client = boto3.session.Session().client(
            "dynamodb",
            endpoint_url=self.urls["store"],
            region_name="us-east-1",
            aws_access_key_id="local",
            aws_secret_access_key="local",
        )
        try:
            items = client.scan(TableName="outlast", ConsistentRead=True)["Items"]
        finally:
            client.close()
        return {item["operation_id"]["S"]: item["state"]["S"] for item in items}

    def gone(self) -> bool:
        """Say whether none of the children seen is left."""
        return not any(alive(child) for child in self.children)

    def stop(self, number: int = signal.SIGTERM) -> str:
        """Stop it by a signal; return what it printed since it was up."""
        self.process.send_signal(number)
        output, errors = self.process.communicate(timeout=30)
        return output + errors


def start_up(process: subprocess.Popen[str]) -> LocalPlatform:
    """Read what `outlast up` prints until it is up."""
    assert process.stdout is not None
    lines: list[str] = []
    while not (lines and lines[-1].startswith("curl ")):
        line = process.stdout.readline()
        assert line, f"outlast up ended: {lines} {process.communicate()[1]}"
        lines.append(line.rstrip())
    words = [line.split() for line in lines]
    urls = {
        word[0]: word[1] for word in words if word[:1] and word[0] in {"web", "receiver", "store"}
    }
    return LocalPlatform(process, lines, urls, children(process.pid))


@contextmanager
def local_platform(
    *options: str, environment: dict[str, str] | None = None, **more: Any
) -> Iterator[LocalPlatform]:
    """Have `outlast up` running on free ports."""
    with module_process(
        "platform_sim.cli", "up", *FREE_PORTS, *options, environment=environment, **more
    ) as process:
        platform = start_up(process)
        yield platform
    poll(platform.gone, what="the end of every child")
