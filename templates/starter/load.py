"""Makes points around the line y = 3x + 2."""
import argparse
import csv
import random

arguments = argparse.ArgumentParser()
arguments.add_argument("--samples", type=int, required=True)
arguments.add_argument("--out", required=True)
options = arguments.parse_args()

rng = random.Random(0)
with open(options.out, "w", newline="") as file:
    table = csv.writer(file)
    for _ in range(options.samples):
        x = rng.uniform(0, 10)
        table.writerow([x, 3 * x + 2 + rng.gauss(0, 0.5)])
print(f"wrote {options.samples} points")
