"""Store server: moto's DynamoDB on a loopback socket, made atomic, as a process of its own.

moto's DynamoDB has no lock: under threads a conditional write can have two winners. Here one
lock, as wide as the process, is held round each API call (`make_atomic`), so conditions hold as
they do on the real service. Rows live in memory and are gone when the process ends.
The table is made by whoever knows it: `--prepare module:function` is called, with
AWS_ENDPOINT_URL_DYNAMODB set to this server, before the ready line is printed.
"""

import argparse
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any

from moto.dynamodb.responses import DynamoHandler
from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from werkzeug.serving import make_server

from platform_sim.host.errors import PortError
from platform_sim.host.imports import load
from platform_sim.host.lifeline import watch_lifeline
from platform_sim.host.ready import announce
from platform_sim.host.store_check import LOCK_HEADER

__all__ = ["local_credentials", "main", "make_atomic", "serving"]


def make_atomic(handler: type[Any] = DynamoHandler) -> None:
    """Let a handler class do one API call at a time, in the whole process."""
    lock = threading.RLock()
    call_action: Callable[[Any], Any] = handler.call_action

    @wraps(call_action)
    def one_at_a_time(self: Any) -> Any:
        with lock:
            return call_action(self)

    handler.call_action = one_at_a_time


def local_credentials(environ: MutableMapping[str, str]) -> None:
    """Fill in what a DynamoDB client asks for, where it is missing; a local store checks none."""
    environ.setdefault("AWS_ACCESS_KEY_ID", "local")
    environ.setdefault("AWS_SECRET_ACCESS_KEY", "local")
    environ.setdefault("AWS_DEFAULT_REGION", environ.get("AWS_REGION", "us-east-1"))
    environ.setdefault("AWS_EC2_METADATA_DISABLED", "true")


@contextmanager
def serving(host: str, port: int) -> Iterator[str]:
    """Serve while the block runs; yields the address. Port 0 picks a free one.

    Raises:
        PortError: The port cannot be bound; somebody may listen there already.
    """
    app = _marked(DomainDispatcherApplication(create_backend_app))
    with _listening(host, port) as listener:
        server = make_server(
            host, port, app, threaded=True, request_handler=_Quiet, fd=listener.fileno()
        )
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="store", daemon=True)
    thread.start()
    try:
        yield f"http://{host}:{server.port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _marked(app: Callable[..., Any]) -> Callable[..., Any]:
    """Let every answer say that this store makes one call at a time."""

    def marked(environ: Any, start_response: Callable[..., Any]) -> Any:
        def start(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
            return start_response(status, [*headers, (LOCK_HEADER, "atomic")], *more)

        return app(environ, start)

    return marked


def main(argv: Sequence[str] | None = None) -> int:
    """Run the store until TERM or INT comes; returns the exit code."""
    options = _options().parse_args(argv)
    watch_lifeline()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    make_atomic()
    try:
        with serving(options.host, options.port) as url:
            if options.prepare is not None:
                os.environ["AWS_ENDPOINT_URL_DYNAMODB"] = url
                local_credentials(os.environ)
                load(options.prepare)()
            announce("store", url)
            stop.wait()
    except PortError as refused:
        print(refused, file=sys.stderr)
        return 1
    return 0


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m platform_sim.host.store_server",
        description="A DynamoDB on loopback: moto, made atomic. Rows live in memory.",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to bind (%(default)s)")
    parser.add_argument("--port", type=int, default=0, help="0 picks a free one (%(default)s)")
    parser.add_argument(
        "--prepare",
        metavar="MODULE:FUNCTION",
        help="called before the store is ready, with AWS_ENDPOINT_URL_DYNAMODB set",
    )
    return parser


def _listening(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), backlog=128)
    except OSError as refused:
        reason = os.strerror(refused.errno or 0).lower()
        raise PortError("--port", port, reason) from refused


class _Quiet(MotoRequestHandler):
    """Answers without a line of log for each request."""

    def log_request(self, *_: object) -> None:
        """Say nothing."""


if __name__ == "__main__":
    sys.exit(main())
