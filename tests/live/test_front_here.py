"""Front and worker under the test's own event loop: real sockets, and only the other side real."""

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Awaitable, Callable
from contextlib import closing, redirect_stderr
from dataclasses import replace
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import msgspec
import pytest

from platform_sim.host import lifeline
from platform_sim.host.app_log import AppLog
from platform_sim.host.errors import LaunchError
from platform_sim.host.front import serve as serve_module
from platform_sim.host.front import worker as worker_module
from platform_sim.host.front.hand import Hand
from platform_sim.host.front.messages import (
    Dying,
    Full,
    Order,
    Ready,
    Resting,
    Retire,
    Serve,
    Woken,
    Word,
    read_word,
    write,
)
from platform_sim.host.front.serve import serve_behind_front
from platform_sim.host.front.watch import watch
from platform_sim.host.front.worker import Worker, main
from platform_sim.host.serving import bind, url_of
from platform_sim.host.signals import Stopped
from platform_sim.lifetime.profile import CLOUD_RUN, WORKERS, CutMode, Profile
from platform_sim.view.event import EventKind
from platform_sim.view.recorder import Recorder, Tee
from platform_sim.view.recording import read_recording
from tests.support import fronted
from tests.support.processes import alive, children, request, until

pytestmark = pytest.mark.live

APP = "tests.support.fronted:app"


class FrontSide:
    """The front's end of a worker that runs here."""

    def __init__(self, profile: Profile = WORKERS, **more: Any) -> None:
        self.listener = bind("127.0.0.1", 0)
        self.url = url_of(self.listener)
        self._ours, theirs = socket.socketpair()
        self._ours.settimeout(0.0)
        self.order = Order(
            number=3,
            app=APP,
            profile=profile,
            listener_fd=os.dup(self.listener.fileno()),
            control_fd=theirs.detach(),
            **more,
        )
        self.recorder = Recorder()

    def start(self, app_log: AppLog | None = None) -> "asyncio.Task[None]":
        """Run the worker."""
        self.control = socket.socket(fileno=self.order.control_fd)
        self.worker = Worker(self.order, self.control)
        observer = Tee(self.recorder, self.worker)
        return asyncio.create_task(self.worker.serve(fronted.app, observer, app_log))

    def say(self, command: Serve | Retire) -> None:
        """Tell the worker something."""
        self._ours.send(write(command))

    async def hear(self, kind: type[Word]) -> Word:
        """Wait until the worker says something of that kind."""
        loop = asyncio.get_running_loop()
        heard = b""
        while True:
            heard += await asyncio.wait_for(loop.sock_recv(self._ours, 1), 15)
            if heard.endswith(b"\n"):
                word = read_word(heard)
                if isinstance(word, kind):
                    return word
                heard = b""

    def close(self) -> None:
        """Give the sockets back."""
        self._ours.close()
        self.listener.close()
        if hasattr(self, "control"):
            self.control.close()


def with_worker(
    act: Callable[[FrontSide], Awaitable[None]], profile: Profile = WORKERS, **more: Any
) -> FrontSide:
    """Run a worker here while `act` plays the front."""
    front = FrontSide(profile, **more)

    async def run() -> None:
        serving = front.start()
        try:
            assert isinstance(await front.hear(Ready), Ready)
            await act(front)
            await asyncio.wait_for(serving, 20)
        finally:
            serving.cancel()

    with closing(front):
        asyncio.run(run())
    return front


def test_a_worker_serves_when_told_to_and_finishes_what_it_has_when_it_retires() -> None:
    """Its requests have names of their own; a retiring worker closes what it answers."""

    async def act(front: FrontSide) -> None:
        waiting = asyncio.create_task(request("GET", front.url))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        front.say(Serve())
        assert (await waiting)[0] == 200
        slow = asyncio.create_task(request("GET", f"{front.url}/slow?0.3"))
        await until(lambda: len(front.recorder.of(EventKind.REQUEST)) == 2, what="the request")
        front.say(Retire())
        assert (await slow)[0] == 200

    front = with_worker(act)

    ids = [event.invocation_id for event in front.recorder.of(EventKind.REQUEST)]
    assert ids == ["w3-1", "w3-2"]


def test_a_worker_asks_to_be_replaced_once_when_it_keeps_too_much() -> None:
    """Each killed coroutine counts."""

    async def act(front: FrontSide) -> None:
        front.say(Serve())
        for _ in range(3):
            await request("GET", f"{front.url}/long")
        assert await front.hear(Full) == Full(2)
        await until(lambda: len(front.recorder.of(EventKind.CUT)) == 3, what="the cuts")
        front.say(Retire())

    profile = replace(WORKERS, allowance_s=0.05, cut=CutMode.KILL)
    with_worker(act, profile, recycle_after=2)


def test_a_worker_tells_its_end_before_it_kills_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the number of connections that end with it."""
    signals: list[tuple[int, int]] = []

    async def act(front: FrontSide) -> None:
        front.say(Serve())
        reader, writer = await asyncio.open_connection(*front.listener.getsockname())
        await request("GET", f"{front.url}/long")
        assert await front.hear(Dying) == Dying(1)
        writer.close()
        await writer.wait_closed()
        del reader
        os.kill(os.getpid(), signal.SIGTERM)

    real = os.kill

    def kill(pid: int, number: int) -> None:
        if number == signal.SIGTERM:
            real(pid, number)
        else:
            signals.append((pid, number))

    monkeypatch.setattr(os, "kill", kill)
    with_worker(act, replace(WORKERS, allowance_s=0.05, cut=CutMode.PROCESS))

    assert signals == [(os.getpid(), signal.SIGKILL)]


def test_a_worker_that_sleeps_stops_itself_when_it_has_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It says so before, and that it runs again after; nobody is accepted meanwhile."""
    stops: list[int] = []
    real = os.kill

    def kill(pid: int, number: int) -> None:
        if number == signal.SIGSTOP:
            stops.append(pid)
        else:
            real(pid, number)

    async def act(front: FrontSide) -> None:
        front.say(Serve())
        await front.hear(Resting)
        await front.hear(Woken)
        assert (await request("GET", front.url))[0] == 200
        front.say(Retire())

    monkeypatch.setattr(os, "kill", kill)
    with_worker(act, CLOUD_RUN, sleeps=True)

    assert set(stops) == {os.getpid()}


def test_a_stop_ends_a_worker_that_has_not_served(monkeypatch: pytest.MonkeyPatch) -> None:
    """A front that has gone silent ends nothing: the lifeline does that."""

    async def act(front: FrontSide) -> None:
        front._ours.close()
        await asyncio.sleep(0.05)
        front.worker.tell(Ready())
        os.kill(os.getpid(), signal.SIGTERM)

    with_worker(act)


def test_what_the_app_logs_is_heard(tmp_path: Path) -> None:
    """From the start of its lifespan on."""
    front = FrontSide()

    async def run(log: AppLog) -> None:
        serving = front.start(log)
        await front.hear(Ready)
        log.write('{"action": "seen"}\n')
        os.kill(os.getpid(), signal.SIGTERM)
        await serving

    with closing(front):
        asyncio.run(run(AppLog(StringIO())))

    (seen,) = front.recorder.of(EventKind.ACTION)
    assert seen.fields == {"action": "seen"}


@pytest.mark.parametrize("sleeps", [False, True])
def test_a_worker_process_is_told_everything_in_its_argument(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    sleeps: bool,  # noqa: FBT001  a parameter of the test
) -> None:
    """It records under its number and process id, and dies with its parent where it may sleep."""
    record = tmp_path / "run.jsonl"
    front = FrontSide(
        replace(CLOUD_RUN, cut=CutMode.PROCESS), record=str(record), sleeps=sleeps, stall_s=0.5
    )
    death: list[None] = []
    served: list[Any] = []

    async def serve(_worker: Worker, app: Any, observer: Any, log: AppLog | None) -> None:
        served.append((app, observer.kinds, log))

    monkeypatch.setattr(Worker, "serve", serve)
    monkeypatch.setattr(worker_module, "watch_lifeline", lambda: None)
    monkeypatch.setattr(worker_module, "_die_with_parent", lambda: death.append(None))
    with closing(front):
        main([msgspec.json.encode(front.order).decode()])

    ((app, kinds, log),) = served
    assert (app, kinds) == (fronted.app, None)
    assert isinstance(log, AppLog)
    assert len(death) == sleeps
    assert record.exists()


def test_a_worker_without_an_app_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2; the front adds nothing to it."""
    front = FrontSide()
    order = msgspec.structs.replace(front.order, app="nowhere:app")
    monkeypatch.setattr(worker_module, "watch_lifeline", lambda: None)
    with closing(front), pytest.raises(SystemExit) as ended:
        main([msgspec.json.encode(order).decode()])

    assert ended.value.code == 2
    assert "no module 'nowhere'" in capsys.readouterr().err


# The front, with real workers.


def serve_here(
    act: Callable[[str], Awaitable[None]],
    *,
    reload_from: Path | None = None,
    app: str = APP,
    profile: Profile = WORKERS,
    **more: Any,
) -> str:
    """Serve behind a front here while `act` uses the address; return what stopped it."""
    order = Order(app=app, profile=profile, **more)

    async def run() -> str:
        up: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with closing(bind("127.0.0.1", 0)) as listener:
            serving = asyncio.create_task(
                serve_behind_front(
                    order, listener, lambda: up.set_result(None), reload_from=reload_from
                )
            )
            await until(lambda: up.done() or serving.done(), what="the front")
            if up.done():
                await act(url_of(listener))
                os.kill(os.getpid(), signal.SIGTERM)
            return await asyncio.wait_for(serving, 30)

    return asyncio.run(run())


async def pid_of(url: str, path: str = "/") -> int:
    """Ask a worker for its process id."""
    return int((await request("GET", url + path))[1])


async def another(url: str, pid: int) -> int:
    """Wait until another worker serves, and return its process id."""
    found = pid
    while found == pid:
        found = await pid_of(url)
        await asyncio.sleep(0.02)
    return found


def test_a_front_replaces_workers_that_are_cut_full_or_killed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever happens to workers is said and recorded."""
    record = tmp_path / "run.jsonl"
    pids: list[int] = []

    async def act(url: str) -> None:
        pids.append(await pid_of(url, "/long"))
        pids.append(await another(url, pids[-1]))
        await pid_of(url, "/blocked")
        pids.append(await another(url, pids[-1]))
        os.kill(pids[-1], signal.SIGKILL)
        pids.append(await another(url, pids[-1]))

    profile = replace(WORKERS, allowance_s=0.3, cut=CutMode.PROCESS)
    with caplog.at_level(logging.WARNING, "outlast.front"):
        stopped_by = serve_here(act, profile=profile, record=str(record))

    assert stopped_by == "SIGTERM"
    assert len(set(pids)) == 4
    assert [pid for pid in pids if alive(pid)] == []
    told = [line for line in read_recording(record).lines if line.kind == EventKind.WORKER]
    assert [line.fields["text"] for line in told] == [
        message.removeprefix(f"request {line.invocation_id}: ")
        for line, message in zip(told, caplog.messages, strict=True)
    ]
    assert any("kills itself at a ceiling" in message for message in caplog.messages)
    assert any("killed from outside" in message for message in caplog.messages)


def test_a_front_recycles_and_reloads_without_losing_the_address(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full worker and a change of the code look the same from outside."""
    monkeypatch.setattr(serve_module, "watch", partial(watch, every_s=0.05))
    (tmp_path / "some.py").write_text("one")
    (tmp_path / "other.py").write_text("one")

    async def act(url: str) -> None:
        first = await pid_of(url, "/long")
        second = await another(url, first)
        (tmp_path / "some.py").write_text("two, longer")
        (tmp_path / "other.py").write_text("two, longer")
        await another(url, second)

    profile = replace(WORKERS, allowance_s=0.05, cut=CutMode.KILL)
    with caplog.at_level(logging.WARNING, "outlast.front"):
        serve_here(act, profile=profile, recycle_after=1, reload_from=tmp_path)

    assert any("keeps 1 killed coroutines" in message for message in caplog.messages)
    assert "other.py and 1 more changed: a new worker is started" in caplog.messages
    assert any(message.endswith("has finished") for message in caplog.messages)


def test_a_front_wakes_a_worker_that_stands_still(caplog: pytest.LogCaptureFixture) -> None:
    """For a request, and for the stop."""

    async def act(url: str) -> None:
        first = await pid_of(url)
        await until(lambda: state(first) == "T", what="the stop")
        assert await pid_of(url) == first
        await until(lambda: state(first) == "T", what="the second stop")

    assert serve_here(act, profile=CLOUD_RUN, sleeps=True) == "SIGTERM"
    assert caplog.messages == []


def state(pid: int) -> str:
    """Return the letter of a process's state."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_front_whose_first_worker_cannot_start_gives_up() -> None:
    """The reason is the worker's to say."""

    async def act(url: str) -> None:
        raise AssertionError(url)

    with (
        redirect_stderr(StringIO()),
        pytest.raises(LaunchError, match="the app ended with exit code 2 before it was ready"),
    ):
        serve_here(act, app="nowhere:app")


def test_a_front_that_is_stopped_before_it_is_up_leaves_nobody() -> None:
    """As when somebody has second thoughts."""
    pids: list[int] = []

    async def run() -> None:
        with closing(bind("127.0.0.1", 0)) as listener:
            order = Order(app=APP, profile=WORKERS)
            serving = asyncio.create_task(serve_behind_front(order, listener, lambda: None))
            await asyncio.sleep(0.05)
            os.kill(os.getpid(), signal.SIGINT)
            await serving

    with pytest.raises(Stopped):
        asyncio.run(run())

    assert pids == []


def test_a_later_worker_that_cannot_start_is_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a pause that grows; connections wait."""
    module = tmp_path / "fickle.py"
    module.write_text(Path(fronted.__file__).read_text())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(fronted.__file__).parents[2]))

    async def act(url: str) -> None:
        first = await pid_of(url)
        good = module.read_text()
        module.write_text("raise OSError\n")
        os.kill(first, signal.SIGKILL)
        await until(lambda: any("trying again" in text for text in caplog.messages))
        module.write_text(good)
        await another(url, first)

    with caplog.at_level(logging.WARNING, "outlast.front"):
        serve_here(act, app="fickle:app")

    assert any("before it was ready; trying again in 0.2 s" in text for text in caplog.messages)


def test_a_change_of_the_code_outdates_the_spare_worker_too(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was started with the old code; a new one that cannot start changes nothing."""
    monkeypatch.setattr(serve_module, "watch", partial(watch, every_s=0.05))
    module = tmp_path / "fickle.py"
    good = Path(fronted.__file__).read_text()
    module.write_text(good)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(fronted.__file__).parents[2]))
    spares: list[list[int]] = []

    async def act(url: str) -> None:
        first = await pid_of(url)
        spares.append(await until(lambda: others(first), what="the spare worker"))
        module.write_text(good + "# changed\n")
        second = await another(url, first)
        assert second not in spares[0]
        module.write_text("raise OSError\n")
        await until(lambda: any("serves on" in text for text in caplog.messages))
        assert await pid_of(url) == second

    with caplog.at_level(logging.WARNING, "outlast.front"):
        profile = replace(WORKERS, cut=CutMode.PROCESS)
        serve_here(act, app="fickle:app", profile=profile, reload_from=tmp_path)

    assert [pid for pid in spares[0] if alive(pid)] == []


def others(pid: int) -> list[int]:
    """Return the other processes this one has started."""
    return [child for child in children(os.getpid()) if child != pid]


def test_a_second_stop_waits_for_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """Workers cut at once what they have."""

    async def act(url: str) -> None:
        await pid_of(url, "/long")
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(0.2)

    assert serve_here(act) == "SIGTERM"
    assert caplog.messages == []


def test_a_process_that_cannot_be_made_is_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The first one's end is the front's; a later one is tried again when something happens."""
    real = Hand.spawn
    starts = iter([real, failing_spawn, real])

    async def spawn(order: Order, line: lifeline.Lifeline) -> Hand:
        return await next(starts)(order, line)

    async def act(url: str) -> None:
        first = await pid_of(url)
        os.kill(first, signal.SIGKILL)
        await another(url, first)

    monkeypatch.setattr(Hand, "spawn", spawn)
    with caplog.at_level(logging.WARNING, "outlast.front"):
        serve_here(act)

    assert "a worker could not be started: no more processes" in " ".join(caplog.messages)
    monkeypatch.setattr(Hand, "spawn", failing_spawn)
    with pytest.raises(OSError, match="no more processes"):
        serve_here(act)


async def failing_spawn(order: Order, line: lifeline.Lifeline) -> Hand:
    """Fail, as a machine does that is full."""
    raise OSError("no more processes")


def test_the_lifeline_of_the_front_is_the_workers(tmp_path: Path) -> None:
    """Each worker is given the front's, not one of its own."""
    environments: list[Any] = []
    real = lifeline.Lifeline.environment

    def environment(self: lifeline.Lifeline) -> dict[str, str]:
        environments.append(self)
        return real(self)

    async def act(url: str) -> None:
        os.kill(await pid_of(url), signal.SIGKILL)
        await pid_of(url)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lifeline.Lifeline, "environment", environment)
        serve_here(act)

    assert len(environments) == 2
    assert len({id(each) for each in environments}) == 1
