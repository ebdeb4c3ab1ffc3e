# Each of these is an error of type checkers.
import pipe_ml as pl

@pl.step(memroy="1GiB")
def load(count: int = 3) -> list[float]:
    return [1.0] * count

@pl.step(docker={"requirments": ["numpy"]})
def total(data: list[float]) -> float:
    return sum(data)

@pl.pipeline
def digits() -> None:
    total(load("three"))
    load(total(load()))
    load(cuont=3)
