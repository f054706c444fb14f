"""How often a page looks, what keeps its places, and what whoever runs the server reads."""

import time

from playground.service.comparisons import ComparisonJob
from playground.service.job import Job
from playground.service.limits import AWAY_SECONDS
from playground.service.run_job import RunJob
from playground.service.training_job import TrainingJob
from playground.ui.under_way import KINDS

from .raw import RawCaller, web
from .runs import ended, known, until
from .test_limits import press_train


def test_whoever_runs_the_server_reads_numbers_and_nothing_else(served):
    board, address = served
    fred = known("fred")
    caller = RawCaller(address, "freds")
    assert press_train(caller, fred, Steps=20)[0] == 200 and caller.call("renew-models")[0] == 200
    until(lambda: board.of(fred) and board.of(fred)[0].settled)
    answer = web("GET", address + "status")
    assert answer.headers["content-type"] == "application/json"
    told = answer.json()
    assert told["jobs"] == board.counts() and told["models"] == board.registry.counts()
    assert told["jobs"]["places"] == 1 and told["models"]["of_visitors"] >= 1 and told["models"]["bytes"] > 0
    assert told["limits"]["models_per_visitor"] == 100 and told["caches"]["bytes"] <= told["caches"]["most_bytes"]
    assert told["page"]["sessions"] > 0 and told["page"]["threads"] > 1
    assert all(isinstance(number, int) for part in told.values() for number in part.values())


def test_whatever_kind_of_job_goes_on_other_tabs_say_where_it_is_seen():
    kinds = {*Job.__subclasses__(), *TrainingJob.__subclasses__()} - {TrainingJob}
    assert {RunJob, ComparisonJob} <= {kind.job for kind in KINDS} >= kinds


def test_a_hidden_page_keeps_its_place_and_one_that_is_gone_loses_it_within_a_minute(served):
    """A browser wakes a hidden page's clocks once a minute; places were kept for 75 seconds because of that."""
    board, address = served
    nora = known("nora")
    assert press_train(RawCaller(address, "noras"), nora, Steps=400)[0] == 200
    (job,) = board.of(nora)
    job.seen -= 100
    assert web("GET", f"{address.rstrip('/')}/news?visitor={nora}").json()["pause"] > 0
    assert time.monotonic() - job.seen < 50 and AWAY_SECONDS < 60
    board.stop(nora)
    ended(job)
