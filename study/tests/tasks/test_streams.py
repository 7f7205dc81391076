import pytest
import torch

from pullback_study.tasks.streams import Streams, key


def splitmix64(seed, number):
    """Number 1, 2, ... of the stream of a seed, in [0, 1)."""
    x = (seed + number * 0x9E3779B97F4A7C15) % 2**64
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
    return (x ^ (x >> 31)) / 2**64


def test_it_is_splitmix64_of_a_counter():
    found = Streams([key("a")], 5, torch.tensor(3)).uniform(torch.float64)[0]
    expected = [splitmix64(key("a"), number) for number in range(16, 21)]
    assert found.tolist() == pytest.approx(expected, abs=2.0**-51)


def test_a_replica_does_not_see_its_group():
    together = Streams([key(i) for i in range(4)], 6, torch.tensor(9)).uniform(torch.float32)
    alone = Streams([key(2)], 6, torch.tensor(9)).uniform(torch.float32)
    assert torch.equal(together[2], alone[0])


def test_steps_draws_and_replicas_differ():
    step = torch.tensor(0)
    streams = Streams([key("x"), key("y")], 50, step)
    drawn = [streams.uniform(torch.float64), streams.uniform(torch.float64)]
    step.add_(1)
    streams.begin_step()
    drawn.append(streams.uniform(torch.float64))
    values = torch.cat(drawn).flatten()
    assert len(values.unique()) == len(values)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gumbel_noise_has_the_right_moments(dtype):
    noise = Streams([key("g")], 200_000, torch.tensor(1)).gumbel(torch.empty(20_000, 10, dtype=dtype))
    assert noise.isfinite().all()
    assert abs(noise.mean().item() - 0.5772) < 0.01
    assert abs(noise.var().item() - 1.6449) < 0.03
