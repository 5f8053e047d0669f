"""A fault says what it needs, and nothing that means nothing."""

from typing import Any

import msgspec
import pytest

from platform_sim.lab.scenario.faults import Act, Fault


def fault(**keys: Any) -> Fault:
    """Return a fault as a file would say it."""
    return msgspec.convert({"at_s": 1.0, **keys}, Fault)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"do": "store"}, "`how` belongs to do = 'store'"),
        ({"do": "kill", "replica": "web-1", "how": "slow"}, "`how` belongs to do = 'store'"),
        ({"do": "up"}, "do = 'up' needs `receiver`"),
        ({"do": "skew", "by_s": 1.0}, "do = 'skew' needs `replica`"),
        ({"do": "break_row", "attributes": {"claim_id": ""}}, "needs `operation`"),
        ({"do": "break_row", "operation": "a"}, "needs `attributes`"),
        ({"do": "index_lag"}, "needs `by_s`"),
        ({"do": "kill", "replica": "web-1", "grace_s": 1.0}, "`grace_s` means nothing"),
        ({"do": "freeze", "replica": "web-1", "back_after_s": 1}, "`back_after_s` means nothing"),
        ({"do": "kill", "replica": "web-1", "until_s": 2.0}, "`until_s` means nothing"),
        ({"do": "index_lag", "by_s": 1.0, "count": 2}, "`count` means nothing"),
        ({"do": "store", "how": "slow", "by_s": -1.0}, "`by_s` must not be negative"),
        ({"do": "store", "how": "slow", "until_s": 0.5}, "must be later than `at_s`"),
        ({"do": "store", "how": "slow", "at": "write"}, "`at_s` or `at`, not both"),
        ({"do": "up", "receiver": "r", "at_s": None}, "either `at_s` or `at`"),
        ({"do": "up", "receiver": "r", "calls": ["claim"]}, "`calls` belongs to do = 'store', or"),
        (
            {"do": "break_row", "operation": "a", "attributes": {"state": "x"}},
            "Invalid enum value 'state'",
        ),
    ],
)
def test_a_fault_that_cannot_be_meant_is_refused(keys: dict[str, Any], said: str) -> None:
    """A key that would be passed over is a mistake somebody has to find."""
    with pytest.raises(msgspec.ValidationError, match=said):
        fault(**keys)


def test_a_skew_may_go_back() -> None:
    """Clocks are slow as well as fast."""
    assert fault(do="skew", replica="web-1", by_s=-5.0).do is Act.SKEW
