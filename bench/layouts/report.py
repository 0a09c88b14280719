#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints tables of layoutbench's results by family and level: decided, right, wrong, median, p99."""
import argparse
import collections
import json
import statistics


def quantile(values, q):
    values = sorted(values)
    return values[min(len(values) - 1, int(q * len(values)))]


def row(name, results):
    decided = [r for r in results if r["outcome"] != "undecided"]
    wrong = sum(r["outcome"] == "wrong" for r in results)
    times = [r["ns"] / 1000 for r in results if r["level"] != "refused"] or [0]
    levels = collections.Counter(r["level"] for r in decided)
    share = " ".join(f"{k} {v}" for k, v in sorted(levels.items()))
    print(f"{name:24} {len(results):6} {100 * len(decided) / len(results):8.2f} {wrong:6} "
          f"{statistics.median(times):9.2f} {quantile(times, 0.99):9.1f} {max(times):10.1f}  {share}")


def peer_row(name, asked, results):
    """The row of a peer that was asked a sample of `asked` queries."""
    said = [r for r in results if r["outcome"] not in ("cannot say", "not installed")]
    if not said:
        outcome = results[0]["outcome"] if results else "not run"
        print(f"{name:24} {outcome}")
        return
    decided = [r for r in said if r["outcome"] != "undecided"]
    right = sum(r["outcome"] == "right" for r in decided)
    times = [r["ns"] / 1000 for r in said]
    print(f"{name:24} {asked:6} {len(said):8} {len(decided):8} {right:6} "
          f"{statistics.median(times):12.1f} {quantile(times, 0.99):12.1f}")


def peers(results, files, seed):
    lines = [[json.loads(line) for line in open(file)] for file in files]
    sample = {r["id"] for r in lines[0] if "id" in r}
    mine = [r for r in results if r["id"] in sample]
    print(f"\nA sample of {len(sample)} of the queries (seed {seed}), asked of others; what each "
          "can say, decides, gets right.\nTimes are of what it can say, the undecided too: "
          "the question alone, in processor time of one\nthread, the layouts read before. isl: one "
          "process a query, at most 10 s; points: NumPy, up to\n2^22 points, the map at every point "
          "included; TVM: IndexMap with its analyzer, called from Python.")
    print(f"{'':24} {'asked':>6} {'can say':>8} {'decided':>8} {'right':>6} {'median µs':>12} "
          f"{'p99 µs':>12}")
    peer_row("Pleat", len(sample), mine)
    for part in lines:
        peer_row(part[0]["peer"], len(sample), part)
        said = {r["id"] for r in part if r["outcome"] not in ("cannot say", "not installed")}
        if said:
            peer_row("  Pleat on what it says", len(said), [r for r in mine if r["id"] in said])


def grouped(results, key):
    out = collections.defaultdict(list)
    for r in results:
        out[key(r)].append(r)
    return sorted(out.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", help="what layoutbench printed")
    parser.add_argument("--queries", help="the queries, to list what is undecided")
    parser.add_argument("--peers", nargs="+", metavar="FILE", default=[],
                        help="what isl_alone and peers.py printed of the same sample")
    parser.add_argument("--seed", type=int, default=1, help="of the sample, to be printed")
    args = parser.parse_args()
    results = [json.loads(line) for line in open(args.results)]
    print(f"{'':24} {'asked':>6} {'decided%':>8} {'wrong':>6} {'median µs':>9} {'p99 µs':>9} "
          f"{'most µs':>10}  decided by")
    for name, part in grouped(results, lambda r: "symbolic" if r["symbolic"] else "static"):
        row(name, part)
    for name, part in grouped(results, lambda r: r["family"]):
        row("  " + name, part)
    for name, part in grouped(results, lambda r: r["op"]):
        row("  " + name, part)
    row("all", results)
    if args.peers:
        peers(results, args.peers, args.seed)
    if not args.queries:
        return
    texts = {q["id"]: q for q in map(json.loads, open(args.queries))}
    for r in results:
        if r["outcome"] != "right":
            q = texts[r["id"]]
            print(f"{r['outcome']}: {r['id']} {r['family']}: {q['op']} {json.dumps(q['a'])}"
                  f"{' ' + json.dumps(q['b']) if 'b' in q else ''} "
                  f"truth {q['truth'] if not isinstance(q['truth'], dict) else q['truth']['answer']}"
                  f": {r['level']}: {r['reason']}")


if __name__ == "__main__":
    main()
