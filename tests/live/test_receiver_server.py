"""The scripted receiver behind a socket: what a client of it sees."""

import asyncio
import json
import signal
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from platform_sim.host import receiver_server
from platform_sim.host.ready import parse_ready
from platform_sim.host.receiver_server import create_receiver_app, main, serve
from platform_sim.world.effects import Lookup
from platform_sim.world.receiver import Receiver
from tests.support.processes import module_process, ready, send, until

pytestmark = pytest.mark.live


class Client:
    """A client of one receiver; `receiver` is the object behind the socket."""

    def __init__(self, session: aiohttp.ClientSession, url: str, receiver: Receiver) -> None:
        self._session = session
        self._url = url
        self.receiver = receiver

    async def ask(self, method: str, path: str, body: Any = None, key: str = "k") -> Any:
        """Send a request; return its status, and its content where there is some."""
        headers = {"Idempotency-Key": key}
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        async with self._session.request(
            method, self._url + path, data=data, headers=headers
        ) as reply:
            text = await reply.text()
            return (reply.status, json.loads(text)) if text else reply.status

    async def deliver(self, *steps: dict[str, Any], key: str = "k") -> Any:
        """Deliver an operation that carries these steps."""
        return await self.ask("POST", "/hooks/x", {"receiver": list(steps)}, key)


def serving(scene: Callable[[Client], Awaitable[None]]) -> None:
    """Run `scene` against a receiver on a socket."""

    async def run() -> None:
        receiver = Receiver(now_ms=lambda: 0)
        runner = web.AppRunner(
            create_receiver_app(receiver),
            access_log=None,
            handler_cancellation=True,
            shutdown_timeout=0.1,
        )
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            async with (
                asyncio.timeout(20),
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=15)) as session,
            ):
                await scene(Client(session, url, receiver))
        finally:
            await runner.cleanup()

    asyncio.run(run())


def test_a_reply_is_the_scripts_status_headers_and_effect() -> None:
    """The path of a delivery through the socket, on a named hook and on any other path."""

    async def scene(client: Client) -> None:
        named = await client.deliver({"status": 201})
        other = await client.ask("POST", "/", {}, "other")

        assert (named, other) == ((201, {"receiver": "scripted"}), (200, {"receiver": "scripted"}))
        assert client.receiver.as_dict()["effects"] == {"k": 1, "other": 1}

    serving(scene)


def test_a_drop_closes_the_connection_without_a_byte() -> None:
    """The client cannot tell whether anything happened."""

    async def scene(client: Client) -> None:
        with pytest.raises(aiohttp.ServerDisconnectedError):
            await client.deliver({"then": "drop"})

        assert client.receiver.effects.lookup("k") is Lookup.FOUND

    serving(scene)


def test_a_hang_keeps_the_connection_open_until_the_client_leaves() -> None:
    """Nothing comes, and the effect is there."""

    async def scene(client: Client) -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.deliver({"then": "hang"}), 0.2)

        assert client.receiver.ledger.rows()[0]["outcome"] == "hung"

    serving(scene)


def test_the_receiver_sees_a_client_leave_and_commits_all_the_same() -> None:
    """Cancellation reaches the network; it does not call work back."""

    async def scene(client: Client) -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.deliver({"delay_s": 0.4}), 0.1)
        seen = set()
        while not client.receiver.effects.counts["k"]:
            seen.add(client.receiver.ledger.rows()[0]["outcome"])
            await asyncio.sleep(0.01)

        assert "left" in seen

    serving(scene)


def test_scripts_are_registered_by_name() -> None:
    """A list of steps or the long form; a mistake is named."""

    async def scene(client: Client) -> None:
        learned = await client.ask("PUT", "/_scripts/x", [{"status": 503}, {"status": 202}])
        delivered = [(await client.ask("POST", "/hooks/x", {}))[0] for _ in range(2)]
        wrong = await client.ask("PUT", "/_scripts/x", [{"status": 7}])
        broken = await client.ask("PUT", "/_scripts/x", b"{")

        assert (learned, delivered) == (204, [503, 202])
        assert (wrong[0], "$.steps[0].status" in wrong[1]["error"], broken[0]) == (400, True, 400)

    serving(scene)


def test_the_ledger_is_shown_and_cleared() -> None:
    """Requests and effects, as the audits read them."""

    async def scene(client: Client) -> None:
        await client.ask("POST", "/hooks/x", {})
        _, before = await client.ask("GET", "/_ledger")
        cleared = await client.ask("DELETE", "/_ledger")
        _, after = await client.ask("GET", "/_ledger")

        digest = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
        request = {"key": "k", "path": "/hooks/x", "attempt": 1, "body_sha256": digest}
        assert request.items() <= before["requests"][0].items()
        assert (before["effects"], cleared) == ({"k": 1}, 204)
        assert after == {"requests": [], "effects": {}, "refused": 0}

    serving(scene)


def test_down_closes_deliveries_unread_and_can_be_undone() -> None:
    """The switch itself goes on answering."""

    async def scene(client: Client) -> None:
        down = await client.ask("PUT", "/_down", {"down": True})
        with pytest.raises(aiohttp.ServerDisconnectedError):
            await client.deliver()
        up = await client.ask("PUT", "/_down", {"down": False})
        wrong = await client.ask("PUT", "/_down", {"down": "yes"})
        status, _ = await client.deliver({})

        assert (down, up, wrong[0], status) == (204, 204, 400, 200)
        assert client.receiver.ledger.refused == 1

    serving(scene)


def test_a_lookup_says_found_absent_or_in_progress() -> None:
    """The three statuses a sender reconciles by."""

    async def scene(client: Client) -> None:
        absent = await client.ask("GET", "/effects/k")
        delivery = asyncio.ensure_future(client.deliver({"delay_s": 0.3}))
        await until(lambda: client.receiver.ledger.requests)
        coming = await client.ask("GET", "/effects/k")
        await delivery
        found = await client.ask("GET", "/effects/k")

        assert absent == (404, {"state": "absent"})
        assert coming == (409, {"state": "in_progress"})
        assert found == (200, {"state": "found"})

    serving(scene)


def test_the_server_says_when_it_is_ready_and_ends_on_a_signal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Port 0 becomes a free one; the endpoint `plain` recognises no key."""

    async def run() -> list[int]:
        server = asyncio.ensure_future(serve(host="127.0.0.1", port=0, dedupe=True))
        line = await until(lambda: capsys.readouterr().out)
        said = parse_ready(line.encode())
        assert said is not None
        counts = []
        async with aiohttp.ClientSession() as session:
            for name in ("plain", "x"):
                for _ in range(2):
                    url = f"{said.url}/hooks/{name}"
                    async with session.post(url, headers={"Idempotency-Key": name}, data=b"{}"):
                        pass
            async with session.get(f"{said.url}/_ledger") as reply:
                counts = [(await reply.json())["effects"][name] for name in ("plain", "x")]
        signal.raise_signal(signal.SIGTERM)
        await asyncio.wait_for(server, 10)
        return counts

    assert asyncio.run(run()) == [2, 1]


def test_main_serves_until_it_is_told_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGINT ends it as SIGTERM does, with nothing raised."""
    announced: list[str] = []

    def stop_at_once(role: str, _url: str) -> None:
        announced.append(role)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(receiver_server, "announce", stop_at_once)
    main(["--port", "0", "--no-dedupe"])

    assert announced == ["receiver"]


def test_the_process_deduplicates_only_when_told_to() -> None:
    """The option reaches the receiver; the process ends with 0 on TERM."""
    counts = []
    for option in ("--dedupe", "--no-dedupe"):
        with module_process("platform_sim.host.receiver_server", option) as process:
            url = ready(process)["url"]
            for _ in range(2):
                send("POST", f"{url}/hooks/x", headers={"Idempotency-Key": "k"}, data=b"{}")
            _, ledger = send("GET", f"{url}/_ledger")
            counts.append(json.loads(ledger)["effects"]["k"])
            process.terminate()
            code = process.wait(10)

        assert code == 0

    assert counts == [1, 2]
