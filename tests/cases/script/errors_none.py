# RUN 1: pleat opt %s
# Python, but nothing for us.
import numpy


def main():
    return 3
