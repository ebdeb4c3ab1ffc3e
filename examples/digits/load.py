"""Writes scikit-learn's bundled handwritten digits: 1,797 images of 8 x 8 pixels."""

import argparse
from pathlib import Path

import joblib
from sklearn.datasets import load_digits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="where the images and labels go")
    arguments = parser.parse_args()

    images, labels = load_digits(return_X_y=True)
    joblib.dump((images, labels), arguments.data)
    print(f"{len(labels)} images of {images.shape[1]} pixels, {len(set(labels))} classes")


if __name__ == "__main__":
    main()
