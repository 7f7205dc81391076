"""New processes: a fork while threads are alive or unused, and an interpreter that ends while they work."""

import os
import subprocess
import sys

import pytest

N = 24
FORKED = 48  # too little for the threads of torch's own operators, which do not survive a fork


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("imports", ["import pullback", "import torch"])
def test_a_fork_before_the_first_use(imports):
    """PyTorch's threads have been used, ours not, when the child is forked: it must not wait for those it has not."""
    program = f"""
import multiprocessing, torch
{imports}
def child():
    import pullback
    from pullback.inference._numba import threads
    torch.set_num_threads(2)
    threads.LITTLE = 1e-9
    scores = torch.ones({FORKED}, {N}, {N})
    print(pullback.DependencyTree().argmax(scores).sum().item(), flush=True)
torch.set_num_threads(2)
torch.ones(1024, 1024).exp_()
process = multiprocessing.get_context("fork").Process(target=child, daemon=True)
process.start()
process.join(60)
print(process.exitcode)
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.split() == [f"{FORKED * N:.1f}", "0"]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_large_batch_in_a_forked_child():
    """PyTorch's operators on large tensors wait for ever for the threads that the parent had."""
    program = """
import os, torch, pullback
torch.set_num_threads(2)
scores = torch.randn(600, 8, 8)
torch.ones(1024, 1024).exp_()  # PyTorch's threads have run
tree = pullback.DependencyTree()
for operation in (tree.argmax, tree.marginals, tree.sparsemap):
    expected = operation(scores)
    child = os.fork()
    if child == 0:
        os._exit(0 if torch.allclose(operation(scores), expected, atol=1e-5) else 3)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), torch.get_num_threads())
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=200, check=True)
    assert found.stdout.split() == ["0", "2"] * 3


def test_the_interpreter_ends_while_daemon_threads_are_in_an_operator():
    program = """
import threading, time, torch, pullback
torch.set_num_threads(2)
scores = torch.randn(64, 24, 24)
tree = pullback.DependencyTree()
def marginals():
    tree.marginals(scores.clone().requires_grad_()).square().sum().backward()
def sparsemap():
    tree.sparsemap(scores)
def forever(operation):
    while True:
        operation()
for operation in (marginals, sparsemap):
    operation()
    for _ in range(2):
        threading.Thread(target=forever, args=(operation,), daemon=True).start()
time.sleep(0.2)
"""
    quiet = {**os.environ, "PULLBACK_QUIET": "1"}
    for _ in range(2):
        found = subprocess.run([sys.executable, "-c", program], env=quiet, capture_output=True, text=True, timeout=200)
        assert (found.returncode, found.stderr) == (0, "")


def test_while_the_interpreter_ends():
    """Threads do not get the GIL any more then: the caller does all of it."""
    program = """
import sys, torch
from pullback.inference._numba import threads
torch.set_num_threads(2)
class Last:
    def __init__(self):
        self.spread, self.write = threads.spread, sys.__stdout__.write
    def __del__(self):
        self.spread(lambda worker, workers: self.write(f"{worker} of {workers}"), 2, 1e9)
sys.modules["last"] = Last()
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert found.stdout == "0 of 1", found.stderr
