"""Receiver server: the scripted receiver on a loopback socket, as a process of its own.

| request | does |
|---|---|
| `POST /hooks/<name>` (any other path too) | what the script `<name>` or the payload's own says |
| `PUT /_scripts/<name>` | registers a script: a JSON list of steps, or an object with `steps` |
| `GET /_ledger`, `DELETE /_ledger` | shows wire requests and effects, forgets them |
| `PUT /_down` `{"down": true}` | deliveries are closed unread from now on |
| `GET /effects/<key>` | 200 found, 404 absent, 409 in progress |

All but the first answer also while the receiver is down. What the receiver does is in
`platform_sim.world.receiver`.
"""

import argparse
import asyncio
import time
from collections.abc import Sequence

import msgspec
from aiohttp import web

from platform_sim.host.lifeline import watch_lifeline
from platform_sim.host.ready import announce
from platform_sim.host.signals import stop_requests
from platform_sim.world.effects import Lookup
from platform_sim.world.receiver import HOOKS, Arrival, Receiver
from platform_sim.world.script import Script, ScriptError, parse_script

__all__ = ["PLAIN", "create_receiver_app", "main", "serve"]

PLAIN = "plain"
"""Name of the endpoint that never recognises a key, whatever the receiver was told."""

_LOOKUP_STATUS = {Lookup.FOUND: 200, Lookup.ABSENT: 404, Lookup.IN_PROGRESS: 409}
_MAX_BODY_BYTES = 16 * 1024 * 1024


class _Down(msgspec.Struct, forbid_unknown_fields=True):
    down: bool


class _Endpoints:
    """The HTTP face of one receiver."""

    def __init__(self, receiver: Receiver) -> None:
        self.receiver = receiver

    async def deliver(self, request: web.Request) -> web.StreamResponse:
        """Give a delivery to the receiver and do with the connection what it says."""
        body = b"" if self.receiver.down else await request.read()
        key = request.headers.get("Idempotency-Key", "")
        reply = await self.receiver.handle(Arrival(path=request.path, key=key, body=body))
        if reply is None:
            if request.transport is not None:
                request.transport.close()
            return web.Response()
        return web.Response(status=reply.status, headers=reply.headers, body=reply.body)

    async def learn(self, request: web.Request) -> web.Response:
        """Register a script."""
        try:
            script = parse_script(msgspec.json.decode(await request.read()))
        except (msgspec.DecodeError, ScriptError) as invalid:
            return web.json_response({"error": str(invalid)}, status=400)
        self.receiver.learn(request.match_info["name"], script)
        return web.Response(status=204)

    async def show(self, _request: web.Request) -> web.Response:
        """Show the ledger."""
        return web.json_response(self.receiver.as_dict())

    async def clear(self, _request: web.Request) -> web.Response:
        """Forget what happened so far."""
        self.receiver.clear()
        return web.Response(status=204)

    async def switch(self, request: web.Request) -> web.Response:
        """Take the receiver down or bring it back."""
        try:
            self.receiver.down = msgspec.json.decode(await request.read(), type=_Down).down
        except msgspec.DecodeError as invalid:
            return web.json_response({"error": str(invalid)}, status=400)
        return web.Response(status=204)

    async def look_up(self, request: web.Request) -> web.Response:
        """Say what became of a key."""
        found = self.receiver.effects.lookup(request.match_info["key"])
        return web.json_response({"state": found}, status=_LOOKUP_STATUS[found])


def create_receiver_app(receiver: Receiver) -> web.Application:
    """Return the web application that serves `receiver`."""
    app = web.Application(client_max_size=_MAX_BODY_BYTES)
    endpoints = _Endpoints(receiver)
    app.add_routes(
        [
            web.put("/_scripts/{name}", endpoints.learn),
            web.get("/_ledger", endpoints.show),
            web.delete("/_ledger", endpoints.clear),
            web.put("/_down", endpoints.switch),
            web.get("/effects/{key}", endpoints.look_up),
            web.post(f"{HOOKS}{{name}}", endpoints.deliver),
            web.post("/{path:.*}", endpoints.deliver),
        ]
    )

    async def close(_app: web.Application) -> None:
        await receiver.aclose()

    app.on_cleanup.append(close)
    return app


async def serve(*, host: str, port: int, dedupe: bool) -> None:
    """Serve until a stop signal comes; port 0 picks a free one."""
    receiver = Receiver(now_ms=lambda: time.time_ns() // 1_000_000, dedupe=dedupe)
    receiver.learn(PLAIN, Script(dedupe=False))
    runner = web.AppRunner(
        create_receiver_app(receiver),
        access_log=None,
        # a client that leaves ends the waiting; the receiver's work goes on by itself
        handler_cancellation=True,
        shutdown_timeout=0.2,
    )
    await runner.setup()
    try:
        with stop_requests() as stop:
            await web.TCPSite(runner, host, port).start()
            announce("receiver", f"http://{host}:{runner.addresses[0][1]}")
            await stop.wait()
    finally:
        await runner.cleanup()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the receiver as a process."""
    parser = argparse.ArgumentParser(prog="receiver_server", description="A scripted receiver.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 picks a free one (default)")
    parser.add_argument("--dedupe", action=argparse.BooleanOptionalAction, default=True)
    options = parser.parse_args(arguments)
    watch_lifeline()
    asyncio.run(serve(host=options.host, port=options.port, dedupe=options.dedupe))


if __name__ == "__main__":
    main()
