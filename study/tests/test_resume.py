"""Killed runs end with the numbers they would have had."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from pullback_study.runner import train
from pullback_study.status import list_runs
from pullback_study.synthetic.study import Synthetic
from small import small

STUDY = Synthetic()
SECONDS = 60
PROGRAM = """
import sys
from pathlib import Path
from test_resume import configs
from pullback_study.runner import train
from pullback_study.synthetic.study import Synthetic
import torch
torch.set_num_threads(1)
outcome = train(Synthetic(), configs(sys.argv[1]), Path(sys.argv[2]), checkpoint_seconds=0.0)
sys.exit(3 if outcome.interrupted else 0)
"""


def configs(estimator):
    options = {"steps": 700, "dtype": "float32"}
    return [small(estimator, seed=seed, learning_rate=rate, **options) for seed in (0, 1) for rate in (0.01, 0.1)]


def start(estimator, root):
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    return subprocess.Popen([sys.executable, "-c", PROGRAM, estimator, str(root)], env=env)


def wait_for_a_checkpoint(process, root):
    deadline = time.monotonic() + SECONDS
    while not list(root.glob("groups/*/checkpoint.pt")):
        assert process.poll() is None, "it ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.parametrize(
    ("estimator", "how", "code"),
    [("sfe-baseline", signal.SIGKILL, -signal.SIGKILL), ("spigot-ce", signal.SIGINT, 3)],
    ids=["kill -9", "Ctrl-C"],
)
def test_bit_equal_after(estimator, how, code, tmp_path):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        train(STUDY, configs(estimator), tmp_path / "whole")
        killed = tmp_path / "killed"
        process = start(estimator, killed)
        wait_for_a_checkpoint(process, killed)
        process.send_signal(how)
        assert process.wait(SECONDS) == code
        assert {run.status for run in list_runs(killed)} == {"killed"}
        train(STUDY, configs(estimator), killed)
    finally:
        torch.set_num_threads(threads)
    for config in configs(estimator):
        whole, resumed = STUDY.run(config, tmp_path / "whole"), STUDY.run(config, killed)
        assert whole.metrics == resumed.metrics
        assert without_times(whole.result) == without_times(resumed.result)
        expected, found = (torch.load(run.path / "checkpoint.pt", weights_only=True) for run in (whole, resumed))
        assert all(torch.equal(expected[name], found[name]) for name in expected)


def without_times(result):
    return {name: value for name, value in result.items() if name != "seconds_of_group"}
