"""Says how far the model is off."""
import json
import sys

import points

data_path, model_path, metrics_path = sys.argv[1:]
with open(model_path) as file:
    model = json.load(file)
data = points.read(data_path)
errors = [(y - model["slope"] * x - model["intercept"]) ** 2 for x, y in data]
metrics = {"rmse": (sum(errors) / len(errors)) ** 0.5, "points": len(errors)}
with open(metrics_path, "w") as file:
    json.dump(metrics, file, indent=2)
print(f"root mean square error {metrics['rmse']:.3f}")
