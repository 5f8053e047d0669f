"""Small worlds at random: whatever goes wrong in them, every invariant holds."""

import json
from typing import Any

from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from platform_sim.lab.scenario.reading import scenario_of
from platform_sim.lab.scenario.verdict import judged, timeline
from platform_sim.wiring.lab import OutlastProduct

RUN_FOR_S = 200.0
NAMES = ["a", "b", "c"]
INSTANTS = st.sampled_from([0.0, 0.05, 0.5, 1.0, 2.0, 3.5, 5.0, 9.0, 14.0, 30.0, 31.0, 60.0, 61.0])
WEBS = ["web-1", "web-2"]
REPLICAS = [*WEBS, "redrive-1", "redrive-2"]


def some(**keys: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return tables in which any of these keys may be left out."""
    return st.fixed_dictionaries({}, optional=keys)


REPLY = st.one_of(
    st.fixed_dictionaries(
        {
            "status": st.sampled_from([200, 204, 400, 408, 409, 422, 425, 429, 500, 502, 503]),
            "delay_s": st.sampled_from([0.0, 0.1, 1.0, 4.0, 12.0, 40.0]),
        },
        optional={"replay": st.booleans(), "connect_s": st.sampled_from([0.5, 8.0])},
    ),
    st.sampled_from(
        [
            {"then": "hang", "commit": "never"},
            {"then": "hang", "commit": "after"},
            {"then": "drop", "commit": "before"},
            {"then": "drop", "commit": "never", "delay_s": 2.0},
            {"refuse": True},
            {"reset_at_byte": 3},
            {"drip_every_s": 1.0},
            {"status": 503, "headers": {"Retry-After": "20"}},
            {"status": 500, "key_lease_s": 30.0},
        ]
    ),
)
RECEIVER = some(
    idempotent=st.booleans(),
    lookup=st.booleans(),
    dedupe_window_s=st.sampled_from([20.0, 100.0, 1000.0]),
    function=st.booleans(),
    replies=st.lists(REPLY, min_size=1, max_size=4),
)
REQUEST = st.fixed_dictionaries(
    {"destination": st.sampled_from(["r", "s"]), "at_s": INSTANTS},
    optional={
        "replica": st.sampled_from(WEBS),
        "client": st.sampled_from(
            [{"leaves_at": "answer"}, {"leaves_after_s": 0.05}, {"body_after_s": 0.2}]
        ),
        "repeats_at_s": st.lists(INSTANTS, max_size=2),
    },
)
WHEN = st.one_of(
    st.fixed_dictionaries({"at_s": INSTANTS}),
    st.fixed_dictionaries(
        {
            "at": st.sampled_from(
                ["accepted", "attempt_started", "byte_left", "committed", "attempt_ended", "write"]
            ),
            "nth": st.integers(1, 4),
        }
    ),
)
ON_REPLICA = st.one_of(
    st.fixed_dictionaries(
        {"do": st.just("kill"), "replica": st.sampled_from(REPLICAS)},
        optional={"back_after_s": st.sampled_from([0.5, 10.0])},
    ),
    st.fixed_dictionaries(
        {"do": st.sampled_from(["freeze", "thaw"]), "replica": st.sampled_from(REPLICAS)}
    ),
    st.fixed_dictionaries(
        {
            "do": st.just("term"),
            "replica": st.sampled_from(REPLICAS),
            "grace_s": st.sampled_from([0.0, 2.0]),
        }
    ),
    st.fixed_dictionaries(
        {
            "do": st.just("skew"),
            "replica": st.sampled_from(REPLICAS),
            "by_s": st.sampled_from([-60.0, -3.0, 3.0, 60.0]),
        }
    ),
    st.fixed_dictionaries(
        {"do": st.just("cancel"), "operation": st.sampled_from(NAMES)},
    ),
    st.fixed_dictionaries(
        {
            "do": st.just("break_row"),
            "operation": st.sampled_from(NAMES),
            "attributes": st.sampled_from(
                [{"lease_until_ms": ""}, {"lease_until_ms": "x"}, {"claim_id": ""}]
            ),
        }
    ),
)
ON_STORE = st.fixed_dictionaries(
    {
        "do": st.just("store"),
        "how": st.sampled_from(
            ["slow", "throttled", "unreachable", "reply_lost", "not_applied", "hangs", "late"]
        ),
        "by_s": st.sampled_from([0.2, 1.5, 6.0]),
    },
    optional={
        "count": st.integers(1, 4),
        "calls": st.sampled_from(
            [["accept"], ["claim", "takeover"], ["confirm"], ["release"], ["heartbeat"], ["due"]]
        ),
    },
)
FAULT = st.one_of(
    st.tuples(WHEN, st.one_of(ON_REPLICA, ON_STORE)).map(lambda pair: pair[0] | pair[1]),
    st.fixed_dictionaries(
        {"do": st.just("index_lag"), "at_s": INSTANTS, "by_s": st.sampled_from([0.5, 5.0])}
    ),
    st.fixed_dictionaries(
        {"do": st.sampled_from(["down", "up"]), "at_s": INSTANTS, "receiver": st.just("r")}
    ),
)
WORLD = st.fixed_dictionaries(
    {
        "name": st.just("at random"),
        "run_for_s": st.just(RUN_FOR_S),
        "seed": st.integers(0, 1000),
        "platform": st.fixed_dictionaries(
            {"web_replicas": st.just(2)},
            optional={
                "allowance_s": st.sampled_from([0.0, 0.5, 5.0, 30.0]),
                "cut": st.sampled_from(["cancel", "kill", "freeze", "process"]),
            },
        ),
        "handler": some(
            budget_s=st.sampled_from([2.0, 10.0, 25.0]),
            attempt_limit_s=st.sampled_from([1.0, 5.0, 20.0]),
            lease_s=st.sampled_from([0.0, 3.0, 45.0]),
            skew_margin_s=st.sampled_from([0.0, 5.0]),
            heartbeat_every_s=st.sampled_from([1.0, 100.0]),
            max_passes=st.sampled_from([2, 50]),
            redrive_batch=st.sampled_from([1, 50]),
            row_backoff_base_s=st.sampled_from([0.5, 10.0]),
        ),
        "receivers": st.fixed_dictionaries({"r": RECEIVER, "s": RECEIVER}),
        "requests": st.lists(REQUEST, min_size=3, max_size=3).map(
            lambda rows: [{"key": name, **row} for name, row in zip(NAMES, rows, strict=True)]
        ),
        "faults": st.lists(FAULT, max_size=4),
        "redrive": st.fixed_dictionaries(
            {"every_s": st.sampled_from([5.0, 30.0]), "replicas": st.just(2)},
            optional={
                "life_s": st.sampled_from([2.0, 20.0]),
                "stagger_s": st.sampled_from([0.05, 1.0]),
            },
        ),
    }
)


@given(WORLD)
@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_every_invariant_holds_in_any_small_world(document: dict[str, Any]) -> None:
    """No crash, no error that escapes, no promise broken."""
    verdict = judged(scenario_of(document), OutlastProduct())
    broken = {name: texts for name, texts in verdict.invariants.items() if texts}
    if broken or verdict.failures:
        note(json.dumps(document, indent=1))
        if verdict.played is not None:
            note("\n".join(timeline(verdict.played)))

    assert (list(verdict.failures), broken) == ([], {})
