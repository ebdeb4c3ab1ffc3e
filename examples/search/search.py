"""The steps of a search in rounds, for the smallest value of a function of two numbers."""

import json
import os
import random
import sys


def read(path):
    with open(path) as file:
        return json.load(file)


def write(path, value):
    with open(path, "w") as file:
        json.dump(value, file)


def loss_at(x, y):
    """Rosenbrock's function: a bent valley, with its smallest value, 0, at (1, 1)."""
    return (1 - x) ** 2 + 100 * (y - x * x) ** 2


def start(known, best):
    """Begins with what an earlier run has published; the input is empty if none has."""
    found = read(known) if os.path.getsize(known) else {"x": -1.0, "y": 1.0, "loss": loss_at(-1.0, 1.0)}
    write(best, {**found, "width": 1.0})


def propose(best, points, seed, number, to):
    """Draws points around the best one: the same ones whenever the same round runs again."""
    centre, draw = read(best), random.Random(f"{seed} {number}")

    def around(value):
        return round(value + draw.uniform(-1, 1) * centre["width"], 6)

    write(to, [{"x": around(centre["x"]), "y": around(centre["y"])} for _ in range(int(points))])


def try_point(point, to):
    point = json.loads(point)
    write(to, {**point, "loss": loss_at(point["x"], point["y"])})


def choose(best, results, to):
    before = read(best)
    tried = [read(os.path.join(results, entry["file"])) for entry in read(os.path.join(results, "index.json"))]
    least = min([before, *tried], key=lambda result: result["loss"])
    # Nearer, where no trial was better.
    width = before["width"] if least["loss"] < before["loss"] else before["width"] / 2
    print(f"loss {least['loss']:.6g} at ({least['x']}, {least['y']})")
    write(to, {"x": least["x"], "y": least["y"], "loss": least["loss"], "width": width})


if __name__ == "__main__":
    {"start": start, "propose": propose, "try": try_point, "choose": choose}[sys.argv[1]](*sys.argv[2:])
