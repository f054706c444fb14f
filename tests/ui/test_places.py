"""Places are never exceeded, none is lost, and where they are short nobody keeps them for themselves."""

import asyncio
import random
from collections import Counter

from playground.ui.places import Places


def served(places: Places, arrivals: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Who came to work, in that order; all arrive while the first is at it."""
    order = []

    async def comes(network: str, visitor: str) -> None:
        async with places.of(network, visitor):
            order.append((network, visitor))
            await asyncio.sleep(0)

    async def all_come() -> None:
        await asyncio.gather(*(comes(*each) for each in arrivals))

    asyncio.run(all_come())
    return order


def test_within_a_network_its_visitors_take_turns():
    for count in (1, 2):
        order = served(Places(count), [("school", "anna")] * 10 + [("school", "bert")])
        assert order.index(("school", "bert")) <= 2


def test_places_are_never_exceeded_and_none_is_lost_whoever_leaves_when():
    places, draws = Places(3), random.Random(0)
    now: Counter[str] = Counter()

    async def comes(n: int) -> None:
        async with places.of(f"network {n % 4}", f"visitor {n % 7}"):
            now["all"] += 1
            assert now["all"] <= 3
            try:
                for _ in range(draws.randrange(4)):
                    await asyncio.sleep(0)
                if draws.random() < 0.2:
                    raise ValueError
            finally:
                now["all"] -= 1

    async def crowd() -> None:
        tasks = []
        for n in range(400):
            tasks.append(asyncio.create_task(comes(n)))
            if draws.random() < 0.3:
                draws.choice(tasks).cancel()
            if draws.random() < 0.5:
                await asyncio.sleep(0)
        await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 30)

    asyncio.run(crowd())
    assert places._free == 3 and not places._line and not places._at_work
