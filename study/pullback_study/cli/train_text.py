"""`pullback train sst` and `pullback train snli`: one model with latent dependency trees."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from pullback_study.cli.options import DataOption, Device, DeviceOption, Precision, RunsOption, TensorBoardOption
from pullback_study.terminal import console, train, user_errors


def command(task: str, about: str) -> Callable[..., None]:
    """The command that trains a model of a task."""

    def train_text(
        estimator: Annotated[str, typer.Option(help="An estimator, or `baseline`; `?` lists them.")],
        seed: Annotated[list[int] | None, typer.Option(help="Repeat it to train several. [default: 0]")] = None,
        learning_rate: Annotated[float | None, typer.Option(help="[default: the paper's best]")] = None,
        step_size: Annotated[
            float | None, typer.Option(help="eta of the inner steps. [default: the paper's best]")
        ] = None,
        inner_steps: Annotated[int | None, typer.Option(help="k. [default: 1]")] = None,
        gamma_scale: Annotated[
            str | None,
            typer.Option(
                help="`paper`: step sizes on the gradient of the averaged loss, as in the paper's code; "
                "`example`: of one example's. [default: paper]"
            ),
        ] = None,
        projection: Annotated[
            str | None,
            typer.Option(
                help="What inner steps are projected onto: `exact`, the marginal polytope, by SparseMAP; `local`, a simpler "
                "set that contains it. [default: exact for SPIGOT, local for SPIGOT-CE]"
            ),
        ] = None,
        projective: Annotated[
            bool | None,
            typer.Option(
                "--projective/--non-projective",
                help="Whether arcs may not cross. [default: projective for SST, non-projective for SNLI]",
            ),
        ] = None,
        epochs: Annotated[int, typer.Option(help="Passes over the training data.")] = 40,
        patience: Annotated[
            int | None, typer.Option(help="Stop after so many epochs without a better validation accuracy.")
        ] = None,
        batch_size: Annotated[int | None, typer.Option(help="[default: the paper's]")] = None,
        train_examples: Annotated[int | None, typer.Option(help="Only the first so many. [default: all]")] = None,
        vectors: Annotated[
            str | None, typer.Option(help="Word vectors: a name in `vectors/`, or a file.")
        ] = None,
        dtype: Precision = Precision.float32,
        data: DataOption = None,
        runs: RunsOption = Path("runs"),
        device: DeviceOption = Device.auto,
        tensorboard: TensorBoardOption = False,
    ) -> None:
        from pullback_study.corpora import find_data
        from pullback_study.text.config import configure
        from pullback_study.text.study import TextStudy
        from pullback_study.text.tasks import find_task

        with user_errors():
            folder = find_data(data)
            configs = [
                configure(
                    task, estimator, seed=each, learning_rate=learning_rate, step_size=step_size,
                    inner_steps=inner_steps, gamma_scale=gamma_scale, projection=projection, projective=projective,
                    epochs=epochs, patience=patience, batch_size=batch_size, train_examples=train_examples, vectors=vectors,
                    dtype=dtype.value, data=find_task(task).training_data(folder),
                )
                for each in seed or [0]
            ]  # fmt: skip
        study = TextStudy(folder)
        train(study, configs, runs, device=device.value, tensorboard=tensorboard)
        for config in configs:
            run = study.run(config, runs)
            console.print(_summary(config.seed, run.result, run.path), highlight=False, soft_wrap=True)

    train_text.__doc__ = f"""{about}

    A run that is stopped or killed goes on, when the same command is run again, from its last checkpoint: one after each
    epoch, where that is not within a second of the one before, and every 20 seconds.

    For example:

    - `pullback train {task} --estimator spigot --data DATA`
    - `pullback train {task} --estimator marginals --non-projective --epochs 10 --patience 3 --seed 0 --seed 1`
    """
    return train_text


def _summary(seed: int, result: dict[str, Any], path: Path) -> str:
    depth = "" if result["test_depth"] is None else f", mean depth of the trees {result['test_depth']:.2f}"
    return (
        f"seed {seed}: validation accuracy {result['validation_accuracy']:.2f} (epoch {result['best_epoch']}), "
        f"test accuracy {result['test_accuracy']:.2f}{depth}  ({path})"
    )
