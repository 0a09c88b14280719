// SPDX-License-Identifier: Apache-2.0
// Finds the strategies by which a reduction can be computed, and predicts their costs, for the
// planner, which compares layouts by them, and for the auto-scheduler, which builds the cheapest.
#include "autosched/internal.h"

Strategies strategies_of(Context *context, const HostMachine *machine, const Nest *nest,
                         const NestLayouts *layouts) {
  Strategies found = {0};
  double rows = rows_cost(context, machine, nest, layouts);
  Tile tile;
  if (tile_choose(context, machine, nest, layouts, &tile))
    found.items[found.count++] = (Strategy){STRATEGY_TILE, tile_cost(machine, &tile), tile};
  if (rows < 0) return found;
  bool first = found.count && rows < found.items[0].cost;
  if (first) found.items[1] = found.items[0];
  found.items[first ? 0 : found.count] = (Strategy){.kind = STRATEGY_ROWS, .cost = rows};
  found.count++;
  return found;
}

double strategy_cost(Context *context, const HostMachine *machine, const Nest *nest,
                     const NestLayouts *layouts, const Strategy *strategy) {
  if (strategy->kind == STRATEGY_ROWS) return rows_cost(context, machine, nest, layouts);
  Tile tile = strategy->tile;
  return tile_predict(context, machine, nest, layouts, &tile) ? tile_cost(machine, &tile) : -1;
}
