"""Kernels of replica groups against plain PyTorch: on a GPU, or in Triton's interpreter in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch

from pullback_study.tasks import kernels
from pullback_study.tasks.listops.lstm import lstm
from pullback_study.tasks.listops.messages import _Product, received
from pullback_study.tasks.streams import Streams, key

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
runs_kernels = pytest.mark.skipif(DEVICE == "cpu" and not kernels.interpreting(), reason="needs a GPU or TRITON_INTERPRET=1")


def test_in_the_interpreter():
    if kernels.triton is None or DEVICE == "cuda" or kernels.interpreting():
        pytest.skip("needs Triton and no GPU")
    command = [sys.executable, "-W", "ignore", "-m", "pytest", "-x", "-p", "no:cacheprovider", __file__]
    done = subprocess.run(command, env=os.environ | {"TRITON_INTERPRET": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "3 passed" in done.stdout


@runs_kernels
def test_messages_and_their_gradients_are_those_of_the_formula():
    generator = torch.Generator().manual_seed(0)
    shapes = (3, 9, 9), (3, 9, 6), (3, 9, 6)
    arcs, own, child = (torch.randn(s, generator=generator).to(DEVICE).requires_grad_() for s in shapes)
    upstream = torch.randn(3, 9, 6, generator=generator).to(DEVICE)
    found = received(arcs, own, child)
    pairs = torch.relu(own[:, :, None] + child[:, None])
    expected = torch.einsum("bhm,bhmk->bhk", arcs, pairs)
    torch.testing.assert_close(found, expected)
    gradients = (torch.autograd.grad(x, (arcs, own, child), upstream) for x in (found, expected))
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other)


@runs_kernels
def test_the_noise_of_a_gpu_has_the_bits_of_a_cpu():
    streams = [Streams([key("x"), key("y")], 1500, torch.tensor(7, device=DEVICE)) for _ in range(2)]
    for _ in range(3):
        fused, bits = streams[0].uniform(torch.float32), streams[1]._next()
        assert torch.equal(fused, (((bits >> 41) & 0x7FFFFF).float() + 0.5) / 2**23)


def test_gradients_of_a_long_product_are_those_of_any_product():
    values, weights = torch.randn(3, 1, 20, 4, dtype=torch.float64), torch.randn(3, 2, 4, 5, dtype=torch.float64)
    assert torch.autograd.gradcheck(_Product.apply, (values.requires_grad_(), weights.requires_grad_()))


@pytest.mark.skipif(DEVICE == "cpu", reason="needs a GPU")
def test_the_fused_lstm_is_the_formula():
    inputs, recurrent = torch.randn(5, 2, 3, 16, requires_grad=True), torch.randn(2, 4, 16, requires_grad=True)
    states = [lstm(*(x.to(device) for x in (inputs, recurrent))).cpu() for device in ("cpu", DEVICE)]
    torch.testing.assert_close(*states, atol=1e-5, rtol=1e-4)
    gradients = (torch.autograd.grad(x.square().sum(), (inputs, recurrent)) for x in states)
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)
