"""Splits the images into a part for training and a part for tests, with equal shares of the classes."""

import argparse
from pathlib import Path

import joblib
from sklearn.model_selection import train_test_split


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--test-size", type=float, required=True, help="share of the images that is kept for tests")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--train", type=Path, required=True)
    parser.add_argument("--test", type=Path, required=True)
    arguments = parser.parse_args()

    images, labels = joblib.load(arguments.data)
    parts = train_test_split(images, labels, test_size=arguments.test_size, random_state=arguments.seed, stratify=labels)
    train_images, test_images, train_labels, test_labels = parts
    joblib.dump((train_images, train_labels), arguments.train)
    joblib.dump((test_images, test_labels), arguments.test)
    print(f"{len(train_labels)} images to train, {len(test_labels)} to test")


if __name__ == "__main__":
    main()
