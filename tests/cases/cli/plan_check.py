"""Is the plan on standard input no worse than no plan, and above its bound?"""
import json
import sys

plan = json.load(sys.stdin)
assert plan["lower_bound"] <= plan["cost"] <= plan["cost_unplanned"], plan
assert all(rewrite["when"] in ("run", "folded") for rewrite in plan["rewrites"]), plan
assert all(rewrite["bytes"] > 0 for rewrite in plan["rewrites"]), plan
print("ok")
