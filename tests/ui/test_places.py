"""Places are never exceeded, none is lost, and where they are short nobody keeps them for themselves."""

import asyncio
import random
from collections import Counter

from playground.ui.places import Places


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
