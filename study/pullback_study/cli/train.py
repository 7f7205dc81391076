"""`pullback train`: one model of a study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pullback_study.cli import train_text
from pullback_study.cli.options import SETTINGS, Device, DeviceOption, Precision, RunsOption, TensorBoardOption
from pullback_study.terminal import console, train, user_errors

app = typer.Typer(help="Train one model of a study.", **SETTINGS)
app.command("sst")(train_text.command("sst", "Train a sentiment model with a latent dependency tree."))
app.command("snli")(train_text.command("snli", "Train an inference model with two latent dependency trees."))


@app.command("synthetic")
def train_synthetic(
    estimator: Annotated[str, typer.Option(help="An estimator, or `linear` or `gold`; `?` lists them.")],
    clusters: Annotated[int, typer.Option(help="K.")] = 10,
    seed: Annotated[list[int] | None, typer.Option(help="Repeat it to train several at once. [default: 0]")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="[default: the paper's best]")] = None,
    step_size: Annotated[float | None, typer.Option(help="eta of the inner steps. [default: the paper's best]")] = None,
    inner_steps: Annotated[int | None, typer.Option(help="k. [default: 1]")] = None,
    gamma_scale: Annotated[str | None, typer.Option(help="`paper`: step sizes on the gradient of the mean loss; "
                                                    "`example`: of one example's. [default: paper]")] = None,
    steps: Annotated[int, typer.Option(help="Updates, each on the whole training set.")] = 10_000,
    evaluate_every: Annotated[int, typer.Option(help="Steps between evaluations.")] = 100,
    dtype: Precision = Precision.float32,
    runs: RunsOption = Path("runs"),
    device: DeviceOption = Device.auto,
    tensorboard: TensorBoardOption = False,
) -> None:  # fmt: skip
    """Train a model with a latent cluster.

    For example:

    - `pullback train synthetic --estimator spigot-ce --step-size 0.1`
    - `pullback train synthetic --estimator softmax --clusters 3 --seed 0 --seed 1 --steps 2000`
    """
    from pullback_study.synthetic.config import configure
    from pullback_study.synthetic.study import Synthetic

    with user_errors():
        configs = [
            configure(
                estimator, clusters=clusters, seed=each, learning_rate=learning_rate, step_size=step_size,
                inner_steps=inner_steps, gamma_scale=gamma_scale, steps=steps, evaluate_every=evaluate_every,
                dtype=dtype.value,
            )
            for each in seed or [0]
        ]  # fmt: skip
    train(Synthetic(), configs, runs, device=device.value, tensorboard=tensorboard)
    for config in configs:
        run = Synthetic().run(config, runs)
        console.print(
            f"seed {config.seed}: test accuracy {run.result['test_accuracy']:.2f}, "
            f"V-measure {run.result['test_v_measure']:.2f}  ({run.path})",
            highlight=False, soft_wrap=True,
        )  # fmt: skip
