"""Divides the rows into those to train with and those to test with, with equal shares of each class."""

import argparse

import pandas
from sklearn.model_selection import train_test_split

parser = argparse.ArgumentParser()
for name in ("data", "train", "test"):
    parser.add_argument("--" + name, required=True)
parser.add_argument("--test-size", type=float, required=True)
parser.add_argument("--seed", type=int, required=True)
args = parser.parse_args()

rows = pandas.read_csv(args.data)
train, test = train_test_split(rows, test_size=args.test_size, random_state=args.seed, stratify=rows["target"])
train.to_csv(args.train, index=False)
test.to_csv(args.test, index=False)
