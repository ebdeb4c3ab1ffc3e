"""Trains a linear model, by one of two methods."""

import argparse

import model


def centroids(rows):
    """Returns the model whose line is half-way between the means of both classes."""
    means = []
    for wanted in (0, 1):
        points = [point for point, label in rows if label == wanted]
        means.append([sum(values) / len(points) for values in zip(*points)])
    weights = [b - a for a, b in zip(*means)]
    middle = [(a + b) / 2 for a, b in zip(*means)]
    return {"weights": weights, "bias": -sum(w * m for w, m in zip(weights, middle))}


def perceptron(rows, rounds=20):
    weights, bias = [0.0, 0.0], 0.0
    for _ in range(rounds):
        for point, label in rows:
            error = label - model.predict({"weights": weights, "bias": bias}, point)
            weights = [w + error * x for w, x in zip(weights, point)]
            bias += error
    return {"weights": weights, "bias": bias}


parser = argparse.ArgumentParser()
parser.add_argument("kind", choices=["centroids", "perceptron"])
parser.add_argument("--data", required=True)
parser.add_argument("--out", required=True)
args = parser.parse_args()
model.save(globals()[args.kind](model.read_rows(args.data)), args.out)
