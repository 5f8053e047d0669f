"""Effects by key: what the rules of a receiver's idempotency are, without any request."""

from platform_sim.world.effects import Effects, Known, Lookup


def test_a_key_goes_from_absent_through_in_progress_to_found() -> None:
    """A lookup never guesses."""
    effects = Effects(lambda: 0)
    seen = [effects.lookup("k")]
    effects.begin("k", "b", dedupe=False)
    seen.append(effects.lookup("k"))
    effects.commit("k", "b", dedupe=False)
    seen.append(effects.lookup("k"))

    assert seen == [Lookup.ABSENT, Lookup.IN_PROGRESS, Lookup.FOUND]


def test_two_commits_under_way_at_once_make_one_effect_under_dedupe_and_two_without() -> None:
    """The count is what audits look at; it must be able to show a double."""
    counts = []
    for dedupe in (True, False):
        effects = Effects(lambda: 0)
        effects.begin("k", "b", dedupe=dedupe)
        effects.begin("k", "b", dedupe=dedupe)
        effects.commit("k", "b", dedupe=dedupe)
        effects.commit("k", "b", dedupe=dedupe)
        counts.append(effects.counts["k"])

    assert counts == [1, 2]


def test_recall_tells_done_from_in_progress_from_another_body() -> None:
    """The three answers a repeat can get, and none for a key never seen."""
    effects = Effects(lambda: 0)
    effects.begin("k", "b", dedupe=True)
    seen = [effects.recall("new", "b"), effects.recall("k", "b"), effects.recall("k", "c")]
    effects.commit("k", "b", dedupe=True)
    seen.append(effects.recall("k", "b"))

    assert seen == [None, Known.IN_PROGRESS, Known.MISMATCHED, Known.DONE]


def test_the_window_counts_from_the_effect() -> None:
    """What lapsed is forgotten, and may happen again."""
    clock = {"now_ms": 0}
    effects = Effects(lambda: clock["now_ms"])
    effects.begin("k", "b", dedupe=True)
    effects.commit("k", "b", dedupe=True, window_s=2.0)
    seen = []
    for clock["now_ms"] in (1_999, 2_000):
        seen.append(effects.recall("k", "b"))

    assert seen == [Known.DONE, None]


def test_o18_a_key_whose_effect_was_lost_is_in_progress_until_its_lease_is_over() -> None:
    """Then it counts as unfinished, and its next request has the effect."""
    now_ms = [0]
    effects = Effects(lambda: now_ms[0])
    effects.lose("k", "sha", lease_s=30.0)
    seen = [effects.recall("k", "sha")]
    now_ms[0] = 30_000
    seen.append(effects.recall("k", "sha"))
    effects.begin("k", "sha", dedupe=True)
    effects.commit("k", "sha", dedupe=True)

    assert seen == [Known.IN_PROGRESS, None]
    assert effects.counts["k"] == 1
    assert effects.recall("k", "sha") is Known.DONE
