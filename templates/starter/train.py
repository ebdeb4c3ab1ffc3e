"""Fits a line by least squares."""
import argparse
import json

import points

arguments = argparse.ArgumentParser()
arguments.add_argument("--data", required=True)
arguments.add_argument("--model", required=True)
options = arguments.parse_args()

data = points.read(options.data)
mean_x = sum(x for x, _ in data) / len(data)
mean_y = sum(y for _, y in data) / len(data)
slope = sum((x - mean_x) * (y - mean_y) for x, y in data) / sum((x - mean_x) ** 2 for x, _ in data)
model = {"slope": slope, "intercept": mean_y - slope * mean_x}
with open(options.model, "w") as file:
    json.dump(model, file)
print(f"y = {model['slope']:.3f} x + {model['intercept']:.3f}")
