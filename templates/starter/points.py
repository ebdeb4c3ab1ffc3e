"""Reads the points that load.py has written."""
import csv


def read(path):
    with open(path, newline="") as file:
        return [(float(x), float(y)) for x, y in csv.reader(file)]
