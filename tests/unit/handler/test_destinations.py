"""Destinations: from TOML, from single variables, and everything that is refused."""

from pathlib import Path

import pytest

from handler.budget import Deadline
from handler.destinations import (
    Destination,
    Operation,
    destinations_from,
    read_destinations,
)
from handler.errors import ConfigurationError
from handler.outcome import Outcome

URL = "https://receiver.test/hook"
SECRET = "whsec_" + "c2VjcmV0c2VjcmV0c2VjcmV0"


async def deliver(_operation: Operation, _budget: Deadline) -> Outcome:
    """Deliver nothing."""
    return Outcome.DELIVERED


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return where the TOML file goes."""
    return tmp_path / "destinations.toml"


def test_a_file_has_a_table_for_each_destination(file: Path) -> None:
    """Every field can be given; what is left out has its default."""
    file.write_text(
        f"""
        [destinations.plain]
        url = "{URL}"

        [destinations.full]
        url = "{URL}"
        idempotent = true
        dedupe_window_s = 3600
        lookup_url = "{URL}/{{id}}"
        secret = "{SECRET}"
        attempt_limit_s = 5
        delivered_on = [409]
        rejected_on = [500]
        """
    )
    full = Destination(
        url=URL,
        idempotent=True,
        dedupe_window_s=3600.0,
        lookup_url=URL + "/{id}",
        secret=SECRET,
        attempt_limit_s=5.0,
        delivered_on=(409,),
        rejected_on=(500,),
    )

    assert {"plain": Destination(url=URL), "full": full} == read_destinations(file)


def test_a_file_without_destinations_has_none(file: Path) -> None:
    """An empty file is a valid one."""
    file.write_text("")

    assert read_destinations(file) == {}


def test_a_missing_file_is_named(file: Path) -> None:
    """The operator reads which path it was."""
    with pytest.raises(ConfigurationError, match=str(file)) as caught:
        destinations_from({"OUTLAST_DESTINATIONS": str(file)})

    assert (caught.value.field, caught.value.remedy) == (
        "OUTLAST_DESTINATIONS",
        "Name an existing TOML file",
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"[destinations", "is not TOML"),
        (b"\xff\xfe", "is not TOML"),
        (b"destinations = 3", "more than destinations"),
        (b'[destination.a]\nurl = "http://a"', "more than destinations"),
        (b"[destinations]\na = 3", "destinations.a: "),
        (b"[destinations.a]", "needs a `url`"),
        (b'[destinations.a]\nurl = "ftp://a"', "must be an http or https address"),
        (b'[destinations.a]\nurl = "http:///path"', "must be an http or https address"),
        (b'[destinations.a]\nurl = "http://a:99999"', "must be an http or https address"),
        (b'[destinations.a]\nurl = "http://a:0"', "must be an http or https address"),
        (b'[destinations.a]\nurl = "http://[::1"', "must be an http or https address"),
        (b'[destinations.a]\nurl = "http://a"\nlookup_url = "a"', "`lookup_url` must be"),
        (b'[destinations.a]\nurl = "http://a"\ncolour = "red"', "colour"),
        (b'[destinations.a]\nurl = "http://a"\ndedupe_window_s = 0', "dedupe_window_s"),
        (b'[destinations.a]\nurl = "http://a"\nattempt_limit_s = -1', "attempt_limit_s"),
        (b'[destinations.a]\nurl = "http://a"\nidempotent = "perhaps"', "idempotent"),
        (b'[destinations.a]\nurl = "http://a"\nsecret = "%%%"', "`secret` must be base64"),
        (b'[destinations.a]\nurl = "http://a"\nsecret = ""', "`secret` must be base64"),
        (b'[destinations.a]\nurl = "http://a"\nrejected_on = [99]', "rejected_on"),
        (
            b'[destinations.a]\nurl = "http://a"\nrejected_on = [500]\nuncertain_on = [500]',
            "stands in two",
        ),
        (b'[destinations.a]\ndeliver = "module:function"', "can only be given by the program"),
    ],
)
def test_every_mistake_in_a_file_is_named(file: Path, content: bytes, said: str) -> None:
    """The message says where, what, and which fields there are."""
    file.write_bytes(content)

    with pytest.raises(ConfigurationError) as caught:
        read_destinations(file)

    assert said in str(caught.value)
    assert caught.value.remedy


def test_a_secret_is_not_repeated_in_an_error(file: Path) -> None:
    """Error messages end up in logs."""
    file.write_text('[destinations.a]\nurl = "http://a"\nsecret = "hunter2%%"')

    with pytest.raises(ConfigurationError) as caught:
        read_destinations(file)

    assert "hunter2" not in str(caught.value)


def test_a_secret_is_not_shown() -> None:
    """A destination in a traceback or log does not give its secret away."""
    assert SECRET not in repr(Destination(url=URL, secret=SECRET))


def test_single_variables_make_destinations() -> None:
    """`OUTLAST_DESTINATION_<NAME>_<FIELD>`; the name is in lower case, lists have commas."""
    environment = {
        "OUTLAST_DESTINATION_BILLING_URL": URL,
        "OUTLAST_DESTINATION_BILLING_IDEMPOTENT": "true",
        "OUTLAST_DESTINATION_BILLING_LOOKUP_URL": URL + "/{id}",
        "OUTLAST_DESTINATION_BILLING_DEDUPE_WINDOW_S": "60",
        "OUTLAST_DESTINATION_BILLING_DELIVERED_ON": "409, 410",
        "OUTLAST_DESTINATION_OTHER_ONE_URL": "http://other.test",
        "OUTLAST_DESTINATION_LOOKUP_URL": "http://lookup.test",
        "UNRELATED": "x",
    }
    billing = Destination(
        url=URL,
        idempotent=True,
        lookup_url=URL + "/{id}",
        dedupe_window_s=60.0,
        delivered_on=(409, 410),
    )
    expected = {
        "billing": billing,
        "lookup": Destination(url="http://lookup.test"),
        "other_one": Destination(url="http://other.test"),
    }

    assert expected == destinations_from(environment)


def test_a_variable_replaces_the_files_destination(file: Path) -> None:
    """The environment is nearer to the operator than the file."""
    file.write_text('[destinations.a]\nurl = "http://file.test"\nidempotent = true')
    environment = {
        "OUTLAST_DESTINATIONS": str(file),
        "OUTLAST_DESTINATION_A_URL": "http://environment.test",
    }

    assert {"a": Destination(url="http://environment.test")} == destinations_from(environment)


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("OUTLAST_DESTINATION_A_COLOUR", "red", "names no field"),
        ("OUTLAST_DESTINATION_URL", URL, "names no field"),
        ("OUTLAST_DESTINATION_A_URL", "a", "must be an http or https address"),
        ("OUTLAST_DESTINATION_A_IDEMPOTENT", "true", "needs a `url`"),
        ("OUTLAST_DESTINATION_A_REJECTED_ON", "500,abc", "rejected_on"),
        ("OUTLAST_DESTINATION_A_DELIVER", "module:function", "only be given by the program"),
    ],
)
def test_every_mistake_in_a_variable_is_named(variable: str, value: str, said: str) -> None:
    """The message names the variable and the fields there are."""
    with pytest.raises(ConfigurationError) as caught:
        destinations_from({variable: value})

    assert said in str(caught.value)
    assert caught.value.field in {variable, "OUTLAST_DESTINATION_A_*"}
    assert "dedupe_window_s" in caught.value.remedy


@pytest.mark.parametrize("arguments", [{}, {"url": URL, "deliver": deliver}])
def test_a_destination_has_a_url_or_a_function(arguments: dict[str, object]) -> None:
    """Neither leaves nothing to do, both leaves a choice that nobody made."""
    with pytest.raises(ValueError, match="needs a `url`"):
        Destination(**arguments)  # type: ignore[arg-type]


def test_overrides_are_found_by_status() -> None:
    """Each list names statuses, each status has one meaning."""
    destination = Destination(
        url=URL,
        delivered_on=(409,),
        rejected_on=(500, 501),
        undelivered_on=(423,),
        uncertain_on=(404,),
        in_progress_on=(202,),
    )
    expected = {
        409: Outcome.DELIVERED,
        500: Outcome.REJECTED,
        501: Outcome.REJECTED,
        423: Outcome.UNDELIVERED,
        404: Outcome.UNCERTAIN,
        202: Outcome.IN_PROGRESS,
    }

    assert expected == destination.status_overrides()
