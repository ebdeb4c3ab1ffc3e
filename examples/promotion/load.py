"""Makes two overlapping clouds of points with labels 0 and 1, and divides them."""

import argparse
import csv
import random


def write(path, rows):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows(rows)


parser = argparse.ArgumentParser()
parser.add_argument("--rows", type=int, required=True)
parser.add_argument("--seed", type=int, required=True)
parser.add_argument("--train")
parser.add_argument("--test", required=True)
args = parser.parse_args()

chance = random.Random(args.seed)
rows = []
for _ in range(args.rows):
    label = chance.randrange(2)
    rows.append([round(chance.gauss(2 * label, 0.7), 4), round(chance.gauss(-label, 0.7), 4), label])
split = len(rows) * 3 // 4 if args.train else 0
if args.train:
    write(args.train, rows[:split])
write(args.test, rows[split:])
