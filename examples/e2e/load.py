"""Writes scikit-learn's wine data: divided for training, or a sample of it without classes, as new data."""

import argparse

from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, required=True)
parser.add_argument("--shift", type=float, default=0, help="standard deviations by which each value of the new data is off")
for name in ("train", "test", "unseen"):
    parser.add_argument("--" + name)
args = parser.parse_args()

rows = load_wine(as_frame=True).frame
if args.unseen:
    values = rows.drop(columns="target")
    (values.sample(60, random_state=args.seed) + args.shift * values.std()).to_csv(args.unseen, index=False)
else:
    train, test = train_test_split(rows, test_size=0.3, random_state=args.seed, stratify=rows["target"])
    train.to_csv(args.train, index=False)
    test.to_csv(args.test, index=False)
