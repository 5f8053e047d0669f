"""Reading: whatever is wrong with a file, one line names the key and what is allowed there."""

from pathlib import Path

import pytest

from platform_sim.lab.scenario.errors import BadScenario
from platform_sim.lab.scenario.reading import parse_scenario, read_scenario
from tests.support.scenarios import ONE, world

R = "[receivers.r]\n"
Q = '[[requests]]\nkey = "a"\ndestination = "r"\n'
F = "[[faults]]\n"
E = '[[expect]]\noperation = "a"\n'


def complaint(text: str) -> str:
    """Return what is said of a bad file."""
    with pytest.raises(BadScenario) as caught:
        parse_scenario(text)
    return str(caught.value)


def test_a_file_says_what_its_keys_say(tmp_path: Path) -> None:
    """Defaults are filled in."""
    path = tmp_path / "x.toml"
    path.write_text(world(ONE, run_for_s=5.0), encoding="utf-8")
    scenario = read_scenario(path)

    assert (scenario.name, scenario.run_for_s, scenario.seed) == ("a test", 5.0, 1)
    assert scenario.requests[0].destination == "r"
    assert scenario.redrive.every_s == 60.0


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (b"name =", "is not TOML"),
        (b"\xff", "is not UTF-8"),
        (b"payload = " + b"[" * 5000 + b"]" * 5000, "is not TOML"),
    ],
)
def test_a_file_that_is_no_toml_is_refused(written: bytes, said: str, tmp_path: Path) -> None:
    """Before anything in it is looked at."""
    path = tmp_path / "x.toml"
    path.write_bytes(written)

    with pytest.raises(BadScenario, match=said):
        read_scenario(path)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """With the system's reason."""
    with pytest.raises(BadScenario, match="cannot be read: No such file"):
        read_scenario(tmp_path / "x.toml")


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ("foo = 1", "foo: there is no such key; there are: name, about, seed, run_for_s"),
        ("run_for = 1", "run_for: there is no such key; did you mean `run_for_s`?"),
        (R + Q + E + "stat = 'x'", "expect[0].stat: there is no such key; did you mean `state`?"),
        ('run_for_s = "5"', "run_for_s: Expected `float`, got `str`"),
        ("run_for_s = nan", "run_for_s: nan is not a finite number"),
        ("run_for_s = 0", "run_for_s: Expected `float` > 0.0"),
        ("run_for_s = 1e12", "run_for_s: Expected `float` <= 31622400.0"),
        (R + Q + "at_s = inf", "requests[0].at_s: inf is not a finite number"),
        (R + Q + "at_s = -1", "requests[0].at_s: Expected `float` >= 0.0"),
        (R + Q + "at_s = 301", "requests[0].at_s: 301 s is after the end (run_for_s = 300)"),
        (R + Q + "repeats_at_s = [301.0]", "requests[0].repeats_at_s: 301 s is after the end"),
        (R + Q + "count = 31\nevery_s = 10.1", "requests[0].every_s: 303 s is after the end"),
        (R + Q + "count = 1000000", "requests[0].count: Expected `int` <= 10000"),
        (R + Q + "count = 9000\nrepeats_at_s = [1.0]", "requests: rows and repeats come to more"),
        (R + Q + "payload = 2020-01-01", "requests[0].payload: dates and times have no place"),
        (R + Q + "payload = [{ x = 07:00:00 }]", "requests[0].payload[0].x: dates and times"),
        (R + Q + 'replica = "web-2"', "requests[0].replica: no web replica is named 'web-2'"),
        (R + Q.replace('"r"', '"q"'), "requests[0].destination: no receiver is named 'q'"),
        (R + Q + '[[requests]]\nname = "a"\ndestination = "r"', "requests[1].name: 'a' is another"),
        (R + Q + Q + '[[requests]]\nname = "a"\nkey = "b"\ndestination = "r"', "requests[2].name"),
        (R + "replies = [{ statu = 3 }]", "receivers.r.replies[0].statu: there is no such key"),
        (R + "replies = []", "receivers.r.replies: Expected `array` of length >= 1"),
        (R + "lookups = [{ status = 200 }]", "receivers.r: `lookups` needs `lookup = true`"),
        ('[receivers."a b"]', "receivers: this name cannot be used"),
        (
            R + Q + "client = { leaves_after_s = 1, leaves_at = 'answer' }",
            "requests[0].client: a client leaves either",
        ),
        (R + Q + "client = { how = 'bye' }", "requests[0].client.how: Invalid enum value 'bye'"),
        (R + Q + F + "do = 'explode'\nat_s = 1", "there are: kill, freeze, thaw, term"),
        (R + Q + F + "do = 'kill'\nat_s = 1", "faults[0]: do = 'kill' needs `replica`"),
        (R + Q + F + "do = 'kill'\nreplica = 'web-1'", "faults[0]: a fault needs either"),
        (
            R + Q + F + "do = 'kill'\nreplica = 'web-9'\nat_s = 1",
            "faults[0].replica: no replica is named 'web-9'; there are: redrive-1, web-1",
        ),
        (
            R + Q + F + "do = 'kill'\nreplica = 'web-1'\nat_s = 999",
            "faults[0].at_s: 999 s is after the end",
        ),
        (
            R + Q + F + "do = 'down'\nreceiver = 'q'\nat_s = 1",
            "faults[0].receiver: no receiver is named 'q'; there are: r",
        ),
        (
            R + Q + F + "do = 'cancel'\noperation = 'b'\nat_s = 1",
            "faults[0].operation: no request is named 'b'",
        ),
        ("[redrive]\nevery_s = 0.001", "redrive.every_s: 0.001 makes more than 20000 runs"),
        ("[redrive]\nfirst_at_s = 301", "redrive.first_at_s: 301 s is after the end"),
        (R + Q + E.replace('"a"', '"b*"'), "expect[0].operation: no request is named 'b*'"),
        (R + Q + E + "at_s = 301", "expect[0].at_s: 301 s is after the end"),
        (R + Q + E + "wire = { mim = 1 }", "expect[0].wire.mim: there is no such key"),
        (R + Q + E + "wire = true", "expect[0].wire: Expected a number, or a range like"),
        ("[[totals]]\nat_s = 301", "totals[0].at_s: 301 s is after the end"),
        ("[[totals]]\nstates = { delivered = 'x' }", "totals[0].states.delivered: Expected a numb"),
        ("[[totals]]\nstartup = 'maybe'", "there are: complete, refused"),
    ],
)
def test_a_mistake_is_named_with_its_key(parts: str, said: str) -> None:
    """Strangers write these files."""
    assert said in complaint('name = "x"\n' + parts)


def test_a_file_without_a_name_is_refused() -> None:
    """A verdict has to say what it is about."""
    assert complaint("seed = 1") == "Object missing required field `name`"


def test_many_names_are_not_all_listed() -> None:
    """Ten are enough to see the mistake."""
    many = R + Q + 'name = "a-{n}"\ncount = 50\n' + E.replace('"a"', '"b"')

    said = complaint('name = "x"\n' + many)

    assert said.endswith(", ...")
    assert said.count("a-") == 10
