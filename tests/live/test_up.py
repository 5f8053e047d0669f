"""`outlast up` as people use it: started, pasted into, killed at, and stopped."""

import os
import shlex
import signal
import socket
import subprocess
from collections.abc import Iterator

import pytest

from tests.support.local_platform import FREE_PORTS, LocalPlatform, local_platform
from tests.support.processes import alive, children, module_process, poll, ready, send

pytestmark = pytest.mark.live

QUICK = ("--ceiling-s", "1.8", "--redrive-every-s", "0.5")
SLOW = {"receiver": [{"delay_s": 0.9}, {}]}


@pytest.fixture(scope="module")
def platform() -> Iterator[LocalPlatform]:
    """One platform for the tests that leave it usable."""
    with local_platform(*QUICK) as running:
        yield running
        running.stop()


def settled(platform: LocalPlatform, ids: set[str]) -> bool:
    """Say whether these operations are all delivered."""
    states = platform.states()
    return all(states.get(operation_id) == "delivered" for operation_id in ids)


def test_the_printed_curl_line_works_when_pasted(platform: LocalPlatform) -> None:
    """The first thing a newcomer does is answered 202."""
    pasted = subprocess.run(
        shlex.split(platform.curl), capture_output=True, text=True, timeout=20, check=True
    )

    assert pasted.stdout.startswith("HTTP/1.1 202 ")


def test_what_was_being_delivered_when_the_web_process_was_killed_is_delivered_once(
    platform: LocalPlatform,
) -> None:
    """SIGKILL loses nothing that was acknowledged, and doubles nothing at the receiver."""
    answers = [platform.post({"n": n, **SLOW}, key=f"kill-{n}") for n in range(4)]
    ids = {content["id"] for _, content in answers}
    poll(lambda: ids <= {request["key"] for request in platform.ledger()["requests"]})
    killed = platform.pid("server")
    os.kill(killed, signal.SIGKILL)
    claimed = {platform.states()[operation_id] for operation_id in ids}
    poll(lambda: settled(platform, ids), within_s=30)

    effects = platform.ledger()["effects"]
    assert ([status for status, _ in answers], claimed) == ([202] * 4, {"claimed"})
    assert {operation_id: effects[operation_id] for operation_id in ids} == dict.fromkeys(ids, 1)


def test_a_killed_web_process_comes_back_at_the_same_address(platform: LocalPlatform) -> None:
    """Clients need not be told anything."""
    killed = platform.pid("server")
    os.kill(killed, signal.SIGKILL)
    poll(lambda: not alive(killed))
    poll(lambda: platform.pid("server") != killed)

    def answers() -> bool:
        try:
            return send("GET", f"{platform.urls['web']}/healthz")[0] == 200
        except OSError:
            return False

    assert poll(answers)


def test_a_killed_redrive_process_comes_back(platform: LocalPlatform) -> None:
    """The durable owner of waiting work must not stay away."""
    killed = platform.pid("cron")
    os.kill(killed, signal.SIGKILL)
    poll(lambda: not alive(killed))

    assert platform.pid("cron") != killed


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_stops_on_a_signal_without_a_terminal_and_leaves_nobody(number: signal.Signals) -> None:
    """SIGINT is inherited as ignored here, as in the background of a shell script."""
    as_a_script_does = ("sh", "-c", 'trap "" INT; exec "$@"', "sh")
    with local_platform(*QUICK, prefix=as_a_script_does, start_new_session=True) as platform:
        output = platform.stop(number)

        assert platform.process.returncode == 0
        assert f"{number.name}: everything is stopped" in output
        assert len(platform.children) == 4
        assert poll(platform.gone)


def test_nobody_outlives_it_when_it_is_killed() -> None:
    """SIGKILL gives it no time to stop anybody."""
    with local_platform(*QUICK) as platform:
        platform.process.kill()

        assert poll(platform.gone)


def test_work_under_way_does_not_hold_up_the_end() -> None:
    """A stop in the middle of a delivery is bounded; the marker stays for redrive."""
    with local_platform("--ceiling-s", "60") as platform:
        platform.post({"receiver": [{"then": "hang"}]}, key="hanging")
        poll(lambda: platform.ledger()["requests"])
        output = platform.stop()

        assert "everything is stopped" in output


def test_without_a_store_nothing_is_accepted_and_it_is_not_replaced() -> None:
    """An empty store would make acknowledged work vanish; 503 owes nothing."""
    with local_platform(*QUICK) as platform:
        store = platform.pid("store_server")
        os.kill(store, signal.SIGKILL)
        poll(lambda: not alive(store))
        status, problem = platform.post({}, key="no-store")
        running = children(platform.process.pid)
        output = platform.stop()

        assert (status, problem["status"], len(running)) == (503, 503, 3)
        assert f"store ({store}) was killed by SIGKILL. What it held is gone" in output


def test_a_store_that_exists_is_used_and_left_running() -> None:
    """AWS_ENDPOINT_URL_DYNAMODB is honoured: table prepared, no store of our own."""
    with module_process("platform_sim.host.store_server") as store:
        url = ready(store)["url"]
        with local_platform(*QUICK, environment={"AWS_ENDPOINT_URL_DYNAMODB": url}) as platform:
            _, accepted = platform.post({}, key="elsewhere")
            delivered = poll(lambda: settled(platform, {accepted["id"]}))
            platform.stop()

            assert (delivered, platform.urls["store"]) == (True, url)
            assert len(platform.children) == 3
            assert alive(store.pid)


def failing(*options: str, **environment: str) -> tuple[int, str, str]:
    """Run `outlast up` to its end; return exit code, stdout and stderr."""
    with module_process("platform_sim.cli", "up", *options, environment=environment) as process:
        output, errors = process.communicate(timeout=60)
        return process.returncode, output, errors


def test_a_taken_port_is_one_clear_message_and_nothing_is_started() -> None:
    """Port and option are named."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, output, errors = failing(*FREE_PORTS, "--receiver-port", str(port))

    assert (code, output) == (2, "")
    assert errors == (
        f"outlast: port {port} cannot be used (address already in use): choose another with"
        " --receiver-port, or --receiver-port 0 for any free one. Nothing was started.\n"
    )


def test_an_app_that_cannot_be_loaded_stops_what_was_started() -> None:
    """The child's own words are shown."""
    code, _, errors = failing(*FREE_PORTS, "--app", "no_such_module:app")

    assert code == 2
    assert errors.startswith("outlast: web ended with exit code ")
    assert "no_such_module" in errors


def test_a_store_that_cannot_be_reached_stops_the_start() -> None:
    """Nothing relies on a store before it was prepared and checked."""
    code, _, errors = failing(*FREE_PORTS, OUTLAST_STORE="http://127.0.0.1:9")

    assert code == 2
    assert errors.startswith("outlast: prepare ended with exit code 1")


def test_when_nobody_reads_its_output_it_stops() -> None:
    """`outlast up | head` must not leave four processes behind."""
    with local_platform() as platform:
        assert platform.process.stdout is not None
        platform.process.stdout.close()
        platform.post({}, key="unseen")
        code = platform.process.wait(20)
        platform.process.stdout = None

        assert code == 0
        assert poll(platform.gone)
