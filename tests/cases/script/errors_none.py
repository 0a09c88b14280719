# Python, but nothing for us.
import numpy


def main():
    return 3
