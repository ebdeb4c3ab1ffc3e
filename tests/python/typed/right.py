from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

import pipe_ml as pl


@dataclass
class Model:
    weights: list[float]
    accuracy: float


class Split(NamedTuple):
    fit: list[float]
    held: list[float]


@pl.step
def load(file: Path, count: int = 3) -> list[float]:
    return [1.0] * count


@pl.step(docker={"requirements": ["numpy"]}, memory="1GiB", retry={"max_retries": 2}, secrets=["TOKEN"])
def split(data: list[float], part: float) -> Split:
    return Split(data, data)


@pl.step
def train(data: list[float], c: float = 1.0) -> Annotated[Model, "model"]:
    pl.metric("loss", c, step=1)
    pl.log("done", rows=len(data))
    return Model(data, 1.0)


@pl.step
def choose(models: list[Model]) -> tuple[Model, float]:
    return models[0], 1.0


@pl.step
def keep(blob: pl.Pickle[Model]) -> Annotated[Path, pl.FileName("model.pkl")]:
    return Path(str(blob))


@pl.pipeline(tags=["x"], settings={"docker": {"parent_image": "python"}})
def digits(part: float = 0.25) -> None:
    parts = split(load(Path("data.csv")), part)
    models = train.map(parts.fit, c=[0.1, 1.0])
    best, score = choose(models)
    with pl.when(score > 0.9):
        keep.with_options(name="kept", after=[best])(best)
    plot = pl.command("plot", ["draw", "${inputs.m}", "${outputs.p}"], inputs={"m": best}, timeout="1m")
    load(plot["p"])
    load.with_options(when=best.accuracy > 0.5)(pl.data("https://example.org/x.csv"))

    def body(model: Model) -> tuple[Model, bool]:
        made, value = choose([model])
        return made, value > 0.5

    keep(pl.repeat(body, best, max=3))


def show() -> float:
    run: pl.Run = digits.run(orchestrator="local", part=0.5)
    for event in digits.start():
        print(event["event"])
    return run.metrics["train.loss"]


if __name__ == "__main__":
    digits.main()
