"""Sessions: who is calling, across nesting, tasks and threads."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from changeover.session import SessionError, current, session


def test_outside_of_any_block_there_is_no_session():
    assert current() is None


def test_a_block_has_its_session_and_gives_the_outer_one_back():
    with session("S", actor="planner") as outer:
        with session("T") as inner:
            assert current() is inner
        assert current() is outer
        assert (outer.id, outer.actor, inner.id, inner.actor) == ("S", "planner", "T", None)
    assert current() is None


def test_a_block_that_raises_gives_the_outer_session_back():
    with pytest.raises(KeyError), session("S"):
        raise KeyError

    assert current() is None


def test_br_05_19_a_sub_agent_keeps_the_session_and_has_its_own_name_and_turns():
    with session("S", actor="planner") as planner:
        turn = planner.turn()
        with session(actor="researcher") as researcher:
            assert (researcher.id, researcher.actor, researcher.current_turn) == ("S", "researcher", None)
            assert researcher.turn() > turn
        assert planner.current_turn == turn


def test_a_block_without_an_actor_keeps_the_actor_of_the_same_session_only():
    with session("S", actor="planner") as planner:
        turn = planner.turn()
        with session("S") as same:
            assert (same.actor, same.current_turn) == ("planner", turn)
        with session() as kept:
            assert (kept.id, kept.actor, kept.current_turn) == ("S", "planner", turn)
        with session("T") as other:
            assert (other.actor, other.current_turn) == (None, None)


def test_a_user_message_counts_for_every_actor_of_the_session_and_for_no_other():
    with session("S") as outer, session(actor="a") as first, session(actor="b") as second, session("T") as other:
        mark = first.user_message()

        assert (outer.current_user_turn, first.current_user_turn, second.current_user_turn) == (mark, mark, mark)
        assert other.current_user_turn is None


def test_turns_keep_growing_when_a_session_goes_on_in_another_block():
    marks = []
    for _ in range(3):
        with session("S") as conversation:
            assert conversation.current_turn is None
            marks += [conversation.user_message(), conversation.turn(), conversation.turn()]

    assert marks == sorted(set(marks))


def test_a_block_can_be_used_again_also_inside_itself():
    block = session("S")
    with block as first, block as second:
        assert first is not second
    assert current() is None
    with block as third:
        assert current() is third


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"id": ""}, "id must not be empty"),
        ({"id": " \n"}, "id must not be empty"),
        ({"id": 5}, "id must be a string, not int"),
        ({"id": "x" * 513}, "513 characters, at most 512"),
        ({"id": "a\x00b"}, "no database stores"),
        ({"id": "\ud800"}, "no database stores"),
        ({"id": "S", "actor": ""}, "actor must not be empty"),
        ({"id": "S", "actor": "x" * 257}, "at most 256"),
    ],
)
def test_an_unusable_id_or_actor_is_refused_with_a_remedy(arguments, says):
    with pytest.raises(SessionError, match=says) as caught:
        session(**arguments)

    assert isinstance(caught.value, ValueError)


def test_no_id_and_none_to_keep_is_refused():
    with pytest.raises(SessionError, match="pass one, or open this block inside another session"), session(actor="a"):
        pass


def test_the_longest_id_is_accepted():
    with session("é" * 512) as conversation:
        assert len(conversation.id) == 512


def test_async_blocks_in_concurrent_tasks_do_not_see_each_other():
    async def agent(name: str) -> list[str | None]:
        seen = []
        async with session(actor=name) as own:
            for _ in range(5):
                await asyncio.sleep(0)
                assert current() is own
                seen.append(own.actor)
        assert current().actor == "planner"
        return seen

    async def run() -> list[list[str | None]]:
        async with session("S", actor="planner"):
            return await asyncio.gather(agent("a"), agent("b"))

    assert asyncio.run(run()) == [["a"] * 5, ["b"] * 5]


def test_a_block_left_in_another_context_disturbs_neither():
    async def run() -> None:
        async def stream():
            with session("S"):
                yield 1
                yield 2

        stepped = stream()
        first = asyncio.create_task(anext(stepped))
        await first
        with session("T") as own:
            await asyncio.create_task(stepped.aclose())
            assert current() is own
        assert current() is None

    asyncio.run(run())


def test_br_05_07_a_thread_without_the_context_has_no_session_rather_than_another_ones():
    with session("S"), ThreadPoolExecutor(1) as pool:
        assert pool.submit(current).result() is None
        assert pool.submit(contextvars.copy_context().run, current).result().id == "S"


def test_br_05_07_threads_that_open_their_own_session_do_not_mix():
    barrier = threading.Barrier(8)

    def work(number: int) -> bool:
        with session(f"S{number}", actor=f"a{number}") as own:
            barrier.wait(10)
            marks = [own.turn() for _ in range(100)]
            return current() is own and marks == sorted(set(marks))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))
