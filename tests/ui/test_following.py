"""How often a page looks, what keeps its places, and what whoever runs the server reads."""

from playground.service.limits import AWAY_SECONDS
from playground.ui.under_way import tick

from .raw import RawCaller, web
from .runs import known, until
from .test_limits import press_train


def test_whoever_runs_the_server_reads_numbers_and_nothing_else(served):
    board, address = served
    fred = known("fred")
    caller = RawCaller(address, "freds")
    assert press_train(caller, fred, steps=20)[0] == 200 and caller.call("renew-models")[0] == 200
    until(lambda: board.of(fred) and board.of(fred)[0].settled)
    answer = web("GET", address + "status")
    assert answer.headers["content-type"] == "application/json"
    told = answer.json()
    assert told["jobs"] == board.counts() and told["models"] == board.registry.counts()
    assert told["jobs"]["places"] == 1 and told["models"]["of_visitors"] >= 1 and told["models"]["bytes"] > 0
    assert told["limits"]["models_per_visitor"] == 100 and told["caches"]["bytes"] <= told["caches"]["most_bytes"]
    assert told["page"]["sessions"] > 0 and told["page"]["threads"] > 1
    assert all(isinstance(number, int) for part in told.values() for number in part.values())


def test_a_page_looks_often_at_what_is_new_or_nearly_over_and_seldom_at_what_takes_long_or_waits():
    assert tick(None) < tick(0.0) == tick(2.0) < 0.5 < tick(5.0) < tick(60.0) == tick(600.0) <= 2
    assert 2 < tick(None, waits=True) < AWAY_SECONDS / 10
