import torch

from pullback_study.tasks.synthetic.train import generate


def test_sizes_and_labels():
    train, validation, test = generate(clusters=10, seed=0)
    assert train.x.shape == (5000, 100)
    assert len(validation.y) == len(test.y) == 1000
    assert set(train.y.tolist()) == {0, 1}
    assert set(test.z.tolist()) == set(range(10))


def test_clusters_are_tight_and_classes_balance_in_each():
    train, _, _ = generate(clusters=3, seed=1)
    for k in range(3):
        mine = train.z == k
        assert abs(train.y[mine].double().mean() - 0.5) < 0.05
        assert abs(train.x[mine].std(0).mean() - 0.1) < 0.005


def test_the_test_set_has_the_same_centers_and_models():
    train, _, test = generate(clusters=3, seed=2)
    for k in range(3):
        ours, theirs = train.z == k, test.z == k
        assert (train.x[ours].mean(0) - test.x[theirs].mean(0)).abs().max() < 0.05
        x = torch.cat([train.x[ours], torch.ones(int(ours.sum()), 1)], 1)
        model = torch.linalg.lstsq(x, 2 * train.y[ours, None].double() - 1).solution
        guess = torch.cat([test.x[theirs], torch.ones(int(theirs.sum()), 1)], 1) @ model > 0
        assert (guess[:, 0] == test.y[theirs]).double().mean() > 0.85


def test_a_seed_decides_everything():
    one, same, other = (generate(clusters=3, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(one[0].x, same[0].x)
    assert torch.equal(one[2].y, same[2].y)
    assert not torch.equal(one[0].x, other[0].x)
