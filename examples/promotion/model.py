"""Linear models of two numbers: `weights` and `bias`, as JSON."""

import csv
import json


def read_rows(path):
    with open(path, newline="") as file:
        return [((float(x), float(y)), int(label)) for x, y, label in csv.reader(file)]


def predict(model, point):
    return int(sum(w * x for w, x in zip(model["weights"], point)) + model["bias"] > 0)


def accuracy(model, rows):
    return sum(predict(model, point) == label for point, label in rows) / len(rows)


def load(path):
    with open(path) as file:
        return json.load(file)


def save(value, path):
    with open(path, "w") as file:
        json.dump(value, file)
