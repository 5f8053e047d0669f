"""Every profile can be said in words, each rule with its source."""

import json
from dataclasses import replace

import pytest

from platform_sim.lifetime.explain import as_data, explain
from platform_sim.lifetime.profile import PROFILES, WORKERS, Profile, ShutdownRule, Topic


@pytest.mark.parametrize("profile", PROFILES.values(), ids=list(PROFILES))
def test_every_rule_of_every_profile_is_said_with_its_source(profile: Profile) -> None:
    """One entry a topic; the data is JSON."""
    explained = explain(profile)

    assert {each.topic for each in explained} == set(Topic)
    assert all(each.rule and "{" not in each.rule for each in explained)
    data = json.loads(json.dumps(as_data(profile)))
    assert set(data) == {"name", "summary", "values", "shared", "rules"}
    assert data["values"]["allowance_s"] == profile.allowance_s
    assert data["rules"]["clock"]["source"] == profile.sources[Topic.CLOCK]


def rules(profile: Profile) -> dict[Topic, str]:
    """Return the rules' words."""
    return {each.topic: each.rule for each in explain(profile)}


def test_the_words_follow_the_values() -> None:
    """Numbers, the limit for the answer and what the stop's grace is for."""
    changed = replace(
        WORKERS, answer_limit_s=7.0, cancel_grace_s=0.25, shutdown=ShutdownRule.ANSWERS
    )

    assert rules(WORKERS)[Topic.ANSWER] == "no limit while the client waits"
    assert rules(changed)[Topic.ANSWER] == "7 s, then the platform answers 504"
    assert rules(PROFILES["vercel"])[Topic.ANSWER] == "300 s, then the platform answers 504"
    assert "0.25 s later" in rules(changed)[Topic.UNSETTLED]
    assert rules(changed)[Topic.SHUTDOWN] == "30 s for answers under way"
    assert rules(PROFILES["generic"])[Topic.ALLOWANCE] == "unbounded"
