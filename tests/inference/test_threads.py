"""The batch is spread over torch's number of threads; several Python threads and forked workers may call at once."""

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from cases import OPERATIONS, TREE_CASES
from pullback.inference._numba import threads
from pullback.inference._threads import openmp, pool, team
from pullback.inference.front.family import backend

PLENTY = 1e9  # so much work that it is worth spreading
COMPILED = [case for case in TREE_CASES if case.backend == "cpu"]
N, BATCH = 24, 96
OPENMP = pytest.mark.skipif(team.current() is None, reason="this PyTorch does not use OpenMP")
FORKED = 48  # too little for the threads of torch's own operators, which do not survive a fork


@pytest.fixture(params=COMPILED, ids=str)
def compiled(request, monkeypatch):
    monkeypatch.setattr(threads, "LITTLE", 1e-9)  # any work is spread
    with backend("cpu"):
        yield request.param


@pytest.fixture
def set_threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.fixture(params=["PyTorch's threads", "a pool of our own"])
def either(request, monkeypatch):
    """The test runs on both kinds of threads."""
    if request.param == "a pool of our own":
        monkeypatch.setattr(team, "current", lambda: None)
    elif team.current() is None:
        pytest.skip("this PyTorch does not use OpenMP")


def calls_of(units, work):
    """Who does what: the (worker, workers) pairs of the calls, and the threads they ran on."""
    calls, where, lock = [], set(), threading.Lock()

    def kernel(worker, workers):
        with lock:
            calls.append((worker, workers))
            where.add(threading.get_ident())

    threads.spread(kernel, units, work)
    return sorted(calls), where


@pytest.mark.parametrize("count", [1, 2, 3])
def test_as_many_workers_as_torch_has_threads(either, set_threads, count):
    set_threads(count)
    calls, _ = calls_of(units=10, work=PLENTY)
    assert calls == [(worker, count) for worker in range(count)]


def test_no_more_workers_than_units(either, set_threads):
    set_threads(4)
    assert calls_of(units=2, work=PLENTY)[0] == [(0, 2), (1, 2)]


def test_no_more_workers_than_the_work_is_worth(either, set_threads):
    set_threads(4)
    assert calls_of(units=10, work=3.5 * threads.LITTLE)[0] == [(0, 3), (1, 3), (2, 3)]


def test_little_work_stays_on_the_calling_thread(either, set_threads):
    set_threads(4)
    assert calls_of(units=10, work=10.0) == ([(0, 1)], {threading.get_ident()})


@pytest.mark.parametrize("failing", [0, 1])
def test_an_exception_of_any_worker_arrives(either, set_threads, failing):
    set_threads(2)

    def kernel(worker, workers):
        if worker == failing:
            raise ZeroDivisionError("from a worker")

    with pytest.raises(ZeroDivisionError, match="from a worker"):
        threads.spread(kernel, 2, PLENTY)


def test_an_interrupt_arrives_when_all_have_ended(either, set_threads):
    set_threads(3)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # processes that run tests side by side ignore it
    ended = []

    def kernel(worker, workers):
        if worker == 0:
            signal.raise_signal(signal.SIGINT)
        ended.append(worker)

    try:
        with pytest.raises(KeyboardInterrupt):
            threads.spread(kernel, 3, PLENTY)
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(ended) >= 2  # the one that was interrupted need not have


@OPENMP
def test_what_a_handler_raises_before_a_part_begins_arrives(set_threads):
    """A signal at any moment, whatever its handler raises: ctypes would print it and go on without the part."""

    class LateError(Exception):
        pass

    def handler(number, frame):
        raise LateError

    set_threads(2)
    before, caught = signal.signal(signal.SIGALRM, handler), 0
    gc.disable()  # callbacks of the garbage collector, such as hypothesis has, swallow what is raised in them
    try:
        for delay in range(1, 1001):
            try:
                signal.setitimer(signal.ITIMER_REAL, 1e-7 * delay)
                for _ in range(1000):  # a hundred times as long as the delay
                    threads.spread(lambda worker, workers: None, 2, PLENTY)
            except LateError:
                caught += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        gc.enable()
    assert caught == 1000


@OPENMP
def test_a_part_that_is_not_done_is_an_error():
    class Library:
        @staticmethod
        def GOMP_parallel(body, job, size, flags):
            """Runs nothing."""

    with pytest.raises(RuntimeError, match="2 of 2 workers"):
        openmp.Team(Library()).run(lambda worker, workers: None, 2)


@OPENMP
def test_openmp_may_give_fewer_threads_than_asked_for():
    """No unit is lost where the number of threads is limited from outside."""
    program = (
        "import torch; from pullback.inference import threads; torch.set_num_threads(4); calls = [];"
        "threads.spread(lambda *call: calls.append(call), 10, 1e9); print(sorted(calls))"
    )
    limited = {**os.environ, "OMP_THREAD_LIMIT": "2"}
    found = subprocess.run([sys.executable, "-c", program], env=limited, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[(0, 4), (1, 4), (2, 4), (3, 4)]"


def test_without_openmp_there_is_no_team(monkeypatch):
    monkeypatch.setattr(openmp.ctypes, "CDLL", lambda path: object())
    assert openmp.find() is None


def test_nested_in_many_threads_it_does_not_lock_up(either, set_threads):
    set_threads(3)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: calls_of(units=10, work=PLENTY)[0], range(50)))
    assert all(calls == [(0, 3), (1, 3), (2, 3)] for calls in found)


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_the_number_of_threads_changes_nothing(compiled, set_threads, operation):
    scores = compiled.random(BATCH, n=N, dtype=torch.float32, seed=1)
    structure = compiled.whole(torch.arange(BATCH) % (N + 1))
    results = []
    for count in (1, 2, 3):
        set_threads(count)
        results.append(operation(structure, scores))
    assert torch.equal(results[0], results[1])
    assert torch.equal(results[0], results[2])


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_several_python_threads_at_once(compiled, set_threads, operation):
    set_threads(2)
    structure = compiled.whole(torch.arange(BATCH) % (N + 1))
    batches = [compiled.random(BATCH, n=N, dtype=torch.float32, seed=seed) for seed in range(6)]
    alone = [operation(structure, scores) for scores in batches]
    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(lambda scores: operation(structure, scores), batches * 2))
    assert all(torch.equal(found, expected) for found, expected in zip(together, alone * 2, strict=True))


def test_backward_passes_in_several_python_threads(compiled, set_threads):
    set_threads(2)
    structure = compiled.whole()
    batches = [compiled.random(BATCH, n=N, dtype=torch.float32, seed=seed) for seed in range(4)]

    def gradient(scores):
        leaf = scores.clone().requires_grad_()
        structure.marginals(leaf).square().sum().backward()
        return leaf.grad

    alone = [gradient(scores) for scores in batches]
    with ThreadPoolExecutor(4) as pool:
        assert all(map(torch.equal, pool.map(gradient, batches), alone))


class Parsed(torch.utils.data.Dataset):
    """Sentences whose best and expected trees are computed by the data-loader's workers."""

    def __init__(self, case, count):
        self.structure, self.scores = case.whole(), case.random(8, FORKED, n=N, dtype=torch.float32)
        self.count = count

    def __len__(self):
        return len(self.scores)

    def __getitem__(self, item):
        torch.set_num_threads(self.count)
        return self.structure.argmax(self.scores[item]), self.structure.marginals(self.scores[item])


@pytest.mark.parametrize("count", [1, 2], ids=["one-thread-a-worker", "two-threads-a-worker"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_data_loader_workers(compiled, set_threads, count):
    """A fork leaves the parent's threads behind: the children have a pool of their own."""
    set_threads(2)
    dataset = Parsed(compiled, count=2)
    expected = [dataset[i] for i in range(len(dataset))]  # the parent has used its threads
    dataset.count = count
    loader = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=2, multiprocessing_context="fork", timeout=60)
    found = list(loader)
    assert len(found) == len(expected)
    for (z, mu), (expected_z, expected_mu) in zip(found, expected, strict=True):
        assert torch.equal(z, expected_z)
        assert torch.equal(mu, expected_mu)


@pytest.mark.parametrize("broken", ["raises", "does nothing", "does one part twice"])
def test_a_team_that_fails_its_test_is_not_used(monkeypatch, broken):
    class Team:
        def run(self, kernel, workers):
            if broken == "raises":
                raise OSError("no threads")
            for worker in [0, 0, 2] if broken == "does one part twice" else []:
                kernel(worker, workers)

    monkeypatch.setattr(openmp, "find", Team)
    monkeypatch.setattr(team, "_tested", False)
    monkeypatch.setattr(team, "_team", None)
    assert team.current() is None
    assert calls_of(units=10, work=PLENTY)[0]


def _report(queue):
    torch.set_num_threads(2)
    queue.put(calls_of(units=10, work=PLENTY)[0])


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_while_the_lock_is_held(set_threads):
    """Another thread may be submitting work at the moment of the fork; the child must not wait for it."""
    set_threads(2)
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    with pool._lock:
        child = context.Process(target=_report, args=(queue,), daemon=True)
        child.start()
    child.join(timeout=30)
    assert child.exitcode == 0
    assert queue.get() == [(0, 2), (1, 2)]
