"""Flags: what may be set, the audit trail, and how the middleware reads them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from changeover.rollout import Flag
from changeover.semconv import Arm, Stage
from changeover.store.engine import open_store
from changeover.store.errors import FlagError, StoreError
from changeover.store.flag_source import StoreFlagSource
from changeover.store.flags import history, list_flags, set_flag
from changeover.store.ingest import ingest


@pytest.fixture
def known(store, span):
    ingest(store, [span(1, tool="find"), span(2, tool="save")])
    return store


def test_a_store_without_flags_lists_none(known):
    assert list_flags(known) == []


def test_setting_a_flag_writes_who_and_why(known):
    change = set_flag(
        known,
        "find",
        stage="cutover",
        rollout=25,
        who="ada",
        reason="looks good",
        clock=lambda: 1_700_000_000_123_456_789,
    )

    assert change.at == datetime(2023, 11, 14, 22, 13, 20, 123456, tzinfo=UTC)
    assert (change.from_stage, change.from_rollout) == (Stage.SHADOW, 0.0)
    assert (change.to_stage, change.to_rollout, change.version, change.forced) == (Stage.CUTOVER, 25.0, 1, False)
    assert history(known) == [change]


def test_the_salt_stays_and_the_version_grows(known):
    set_flag(known, "find", stage="cutover", rollout=10, who="ada", reason="begin")
    first = list_flags(known)[0]
    set_flag(known, "find", rollout=50, who="ada", reason="more")
    second = list_flags(known)[0]

    assert second == Flag("find", Stage.CUTOVER, 50.0, first.version + 1, first.salt)
    assert first.salt


def test_a_first_cutover_that_names_no_share_means_everyone(known):
    assert set_flag(known, "find", stage="cutover", who="ada", reason="go").to_rollout == 100


def test_a_share_is_kept_when_only_the_stage_is_named(known):
    set_flag(known, "find", stage="cutover", rollout=25, who="ada", reason="begin")

    assert set_flag(known, "find", stage="cutover", who="ada", reason="again").to_rollout == 25


def test_history_is_newest_first_and_per_tool(known):
    for tool in ("find", "save", "find"):
        set_flag(known, tool, stage="cutover", who="ada", reason=f"for {tool}")

    assert [change.tool for change in history(known)] == ["find", "save", "find"]
    assert [change.version for change in history(known, "find")] == [2, 1]
    assert len(history(known, limit=1)) == 1
    assert history(known, "never") == []


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"stage": "live"}, "unknown stage 'live'; use one of legacy, shadow, cutover"),
        ({"stage": "dual"}, "a function is not"),
        ({"rollout": 101}, "0 to 100"),
        ({"rollout": -1}, "0 to 100"),
        ({"rollout": float("nan")}, "0 to 100"),
        ({"rollout": float("inf")}, "0 to 100"),
        ({"rollout": "50"}, "0 to 100"),
        ({"rollout": True}, "0 to 100"),
        ({"reason": "  "}, "say why"),
        ({"reason": "x" * 3_000}, "keep it to"),
        ({"who": ""}, "say who"),
        ({"tool": "fnd"}, "known: find, save"),
        ({"tool": " "}, "name the tool"),
        ({"tool": " ", "force": True}, "name the tool"),
    ],
)
def test_what_cannot_be_set_is_refused_in_words_and_leaves_nothing(known, options, says):
    asked = {"tool": "find", "stage": "cutover", "who": "ada", "reason": "why"} | options
    with pytest.raises(FlagError, match=says):
        set_flag(known, asked.pop("tool"), **asked)

    assert (list_flags(known), history(known)) == ([], [])


def test_a_tool_that_is_not_known_yet_may_be_forced(known):
    change = set_flag(known, "later", stage="cutover", who="ada", reason="prepare", force=True)

    assert change.forced
    assert [flag.tool for flag in list_flags(known)] == ["later"]


def test_an_empty_store_says_that_it_knows_no_tool(store):
    with pytest.raises(FlagError, match="known: none yet"):
        set_flag(store, "find", stage="cutover", who="ada", reason="why")


def test_many_known_tools_are_not_all_listed(store, span):
    ingest(store, [span(number, tool=f"t{number:02}") for number in range(1, 15)])

    with pytest.raises(FlagError, match="t10 and 4 more"):
        set_flag(store, "find", stage="cutover", who="ada", reason="why")


def test_words_that_no_database_takes_are_cleaned(known):
    change = set_flag(known, "find", stage="cutover", who="a\x00da", reason="\ud800 why")

    assert (change.who, change.reason) == ("a\ufffdda", "\ufffd why")
    assert history(known) == [change]


def test_changes_made_at_once_each_get_a_version(store_url, known, side_by_side):
    code = """
from changeover.store.engine import open_store
from changeover.store.flags import set_flag
with open_store(sys.argv[1]) as store:
    for _ in range(5):
        set_flag(store, "find", stage="cutover", who=sys.argv[2], reason="race")
"""
    side_by_side(code, [[store_url, str(number)] for number in range(3)])

    assert [change.version for change in history(known)] == list(range(15, 0, -1))


def test_the_source_gives_flags_and_pinned_arms(known, store_url, span):
    set_flag(known, "find", stage="cutover", who="ada", reason="go")
    ingest(
        known,
        [
            span(11, session="new", arm="structured"),
            span(12, session="both", arm="legacy"),
            span(13, session="both", arm="structured"),
        ],
    )
    source = StoreFlagSource(store_url)
    try:
        assert source.load()["find"].stage is Stage.CUTOVER
        pinned = [source.pinned(name, "find") for name in ("s", "new", "both", "never")]
        assert pinned == [Arm.LEGACY, Arm.STRUCTURED, Arm.LEGACY, None]
        assert source.pinned("s", "never") is None
    finally:
        source.close()


def test_a_store_that_is_not_there_yet_has_no_flags_and_is_not_created(tmp_path):
    path = tmp_path / "changeover.db"
    source = StoreFlagSource(f"sqlite:///{path}")

    assert source.load() == {}
    assert source.pinned("s", "find") is None
    assert not path.exists()
    source.close()


def test_a_store_that_is_being_made_has_no_flags_yet(store_url, tmp_path):
    (tmp_path / "changeover.db").touch()
    source = StoreFlagSource(store_url)
    assert source.load() == {}
    with open_store(store_url) as store:
        set_flag(store, "find", stage="cutover", who="ada", reason="go", force=True)

    assert list(source.load()) == ["find"]
    source.close()


def test_a_store_that_is_gone_is_a_fault_and_not_a_store_without_flags(tmp_path):
    path = tmp_path / "changeover.db"
    open_store(f"sqlite:///{path}").close()
    source = StoreFlagSource(f"sqlite:///{path}")
    source.load()
    source.close()
    path.unlink()

    with pytest.raises(StoreError, match="gone"):
        source.load()


def test_a_source_sees_a_change_made_elsewhere(known, store_url):
    source = StoreFlagSource(store_url)
    before = source.load()
    set_flag(known, "find", stage="cutover", who="ada", reason="go")
    after = source.load()
    source.close()

    assert (dict(before), after["find"].version) == ({}, 1)
