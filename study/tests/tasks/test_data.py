import torch

from pullback_study.tasks.synthetic.train import generate


def test_sizes_and_labels():
    data = generate(clusters=10, seed=0)
    assert data.train.x.shape == (5000, 100)
    assert len(data.validation.y) == len(data.test.y) == 1000
    assert set(data.train.y.tolist()) == {0, 1}
    assert set(data.test.z.tolist()) == set(range(10))


def test_clusters_are_tight_and_classes_balance_in_each():
    data = generate(clusters=3, seed=1)
    for k in range(3):
        mine = data.train.z == k
        assert abs(data.train.y[mine].double().mean() - 0.5) < 0.05
        assert abs(data.train.x[mine].std(0).mean() - 0.1) < 0.005


def test_the_test_set_has_the_same_centers_and_models():
    data = generate(clusters=3, seed=2)
    for k in range(3):
        train, test = data.train.z == k, data.test.z == k
        assert (data.train.x[train].mean(0) - data.test.x[test].mean(0)).abs().max() < 0.05
        x = torch.cat([data.train.x[train], torch.ones(int(train.sum()), 1)], 1)
        model = torch.linalg.lstsq(x, 2 * data.train.y[train, None].double() - 1).solution
        guess = torch.cat([data.test.x[test], torch.ones(int(test.sum()), 1)], 1) @ model > 0
        assert (guess[:, 0] == data.test.y[test]).double().mean() > 0.85


def test_a_seed_decides_everything():
    one, same, other = (generate(clusters=3, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(one.train.x, same.train.x)
    assert torch.equal(one.test.y, same.test.y)
    assert not torch.equal(one.train.x, other.train.x)
