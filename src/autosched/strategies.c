// SPDX-License-Identifier: Apache-2.0
// Finds the strategies that can compute a reduction, with their costs: for the planner, which
// compares layouts by them, and for the auto-scheduler, which builds the cheapest. They are
// remembered as long as the context lives, because networks repeat layers of the same extents, and
// the planner asks for each of their layouts again. An answer is found by the digest of all numbers
// that the cost model reads.
#include "autosched/internal.h"
#include "base/digest.h"

typedef struct KnownStrategies {
  Digest of;
  Strategies strategies;
} KnownStrategies;

struct StrategyTable {
  Map known; // by the first word of the digest
};

static double scalar_cycles(const HostMachine *machine, const Nest *nest) {
  return nest->points * cost_model_of(machine)->scalar_cycles;
}

static void add_strategy(Strategies *found, Strategy strategy) {
  int at = found->count++;
  for (; at > 0 && found->items[at - 1].cost > strategy.cost; at--)
    found->items[at] = found->items[at - 1];
  found->items[at] = strategy;
}

static Strategies search(Context *context, const HostMachine *machine, const Nest *nest,
                         const NestLayouts *layouts) {
  Strategies found = {.output = layouts->output, .runner_up_count = STRATEGY_RUNNERS_UP};
  double rows = rows_cost(context, machine, nest, layouts);
  Tile tile;
  if (tile_choose(context, machine, nest, layouts, &tile, found.runners_up, &found.runner_up_count))
    add_strategy(&found, (Strategy){STRATEGY_TILE, tile_cost(machine, &tile), tile});
  if (rows >= 0) add_strategy(&found, (Strategy){.kind = STRATEGY_ROWS, .cost = rows});
  found.scalar = found.count && scalar_cycles(machine, nest) < found.items[0].cost;
  return found;
}

double strategies_cycles(const HostMachine *machine, const Nest *nest,
                         const Strategies *strategies) {
  bool scalar = !strategies->count || strategies->scalar;
  return scalar ? scalar_cycles(machine, nest) : strategies->items[0].cost;
}

// ---- The table

typedef struct Question {
  Array(int64_t) items;
  Arena *arena;
  bool complete; // the numbers describe everything
} Question;

static void add(Question *q, int64_t value) {
  array_push(q->arena, &q->items, value);
}

static void add_contents(Question *q, const void *data, size_t size) {
  Digest digest = digest_of(data, size);
  add(q, (int64_t)digest.words[0]);
  add(q, (int64_t)digest.words[1]);
}

static void add_buffer(Question *q, const Buffer *buffer) {
  int64_t extent = -1;
  add(q, (int64_t)buffer->type.code << 32 | (int64_t)buffer->type.bits << 16 | buffer->type.lanes);
  add(q, buffer->rank);
  for (int d = 0; d < buffer->rank; d++) {
    if (!expr_as_int(buffer->shape[d], &extent)) q->complete = false;
    add(q, extent);
  }
}

static void add_read(Question *q, const Nest *nest, const NestRead *read) {
  add_buffer(q, read->buffer);
  for (int d = 0; d < read->buffer->rank; d++) {
    if (!read->linear[d]) q->complete = false; // its expression is needed too
    add(q, read->base[d]);
    for (int a = 0; a < nest->axis_count; a++) add(q, read->coefficient[d][a]);
    add(q, read->group_size[d]);
    if (!read->group_size[d]) continue;
    add(q, read->group_axis[d]);
    add(q, read->group_step[d]);
  }
}

static void add_nest(Question *q, const Nest *nest) {
  add(q, nest->axis_count);
  add(q, nest->spatial_count);
  for (int a = 0; a < nest->axis_count; a++) add(q, nest->axes[a].extent);
  add_buffer(q, nest->output);
  for (int d = 0; d < nest->output->rank; d++) add(q, nest->output_axis[d]);
  add(q, nest->conditional);
  add(q, nest->guard_axes);
  add_contents(q, &nest->work, sizeof nest->work);
  add(q, nest->read_count);
  for (int i = 0; i < nest->read_count; i++) add_read(q, nest, &nest->reads[i]);
}

// Equal layouts are one object, which lives as long as the context.
static void add_layouts(Question *q, const Nest *nest, const NestLayouts *layouts) {
  add(q, (int64_t)(intptr_t)layouts->output);
  for (int i = 0; i < nest->read_count; i++) {
    add(q, (int64_t)(intptr_t)layouts->reads[i]);
    add(q, layouts->packed[i]);
  }
}

static Digest digest_items(const Question *q) {
  return digest_of(q->items.items, sizeof(int64_t) * (size_t)q->items.count);
}

static void digest_nest(Context *context, const HostMachine *machine, const Nest *nest) {
  Question question = {.arena = &context->scratch, .complete = true};
  add_contents(&question, machine, sizeof *machine);
  add_nest(&question, nest);
  *nest->digest = (NestDigest){digest_items(&question), true, question.complete};
}

// The digest of a question. False when the nest cannot be described by numbers alone.
static bool digest_question(Context *context, const HostMachine *machine, const Nest *nest,
                            const NestLayouts *layouts, Digest *out) {
  ArenaMark mark = arena_mark(&context->scratch);
  if (!nest->digest->known) digest_nest(context, machine, nest);
  Question question = {.arena = &context->scratch, .complete = nest->digest->complete};
  add(&question, (int64_t)nest->digest->of.words[0]);
  add(&question, (int64_t)nest->digest->of.words[1]);
  add_layouts(&question, nest, layouts);
  *out = digest_items(&question);
  arena_reset(&context->scratch, mark);
  return question.complete;
}

static Map *known_strategies(Context *context) {
  if (!context->strategies) {
    context->strategies = arena_new(&context->lasting, struct StrategyTable);
    context->strategies->known = map_new(&context->lasting);
  }
  return &context->strategies->known;
}

const Strategies *strategies_of(Context *context, const HostMachine *machine, const Nest *nest,
                                const NestLayouts *layouts) {
  Digest digest;
  if (!digest_question(context, machine, nest, layouts, &digest)) {
    Strategies found = search(context, machine, nest, layouts);
    return arena_copy(&context->arena, &found, sizeof found);
  }
  Map *map = known_strategies(context);
  const KnownStrategies *known = map_get(map, digest.words[0]);
  if (!known || !digest_equal(known->of, digest)) {
    KnownStrategies found = {digest, search(context, machine, nest, layouts)};
    known = arena_copy(&context->lasting, &found, sizeof found);
    map_set(map, digest.words[0], (void *)known);
  }
  return &known->strategies;
}

// ---- One strategy

Strategies strategies_behind(Context *context, const HostMachine *machine,
                             const Strategies *strategies, int places) {
  Strategies behind = *strategies;
  behind.scalar = false;
  Strategy all[COUNT_OF(behind.items) + STRATEGY_RUNNERS_UP];
  int count = 0;
  for (int i = 0; i < strategies->count; i++) all[count++] = strategies->items[i];
  for (int i = 0; i < strategies->runner_up_count; i++) {
    const Tile *tile = &strategies->runners_up[i];
    Strategy next = {STRATEGY_TILE, tile_cost(machine, tile), *tile};
    int at = count++;
    for (; at > 1 && all[at - 1].cost > next.cost; at--) all[at] = all[at - 1];
    all[at] = next;
  }
  if (!count) return behind;
  behind.items[0] = all[MIN_OF(places, count - 1)];
  behind.items[1] = strategies->items[0];
  behind.count = 2;
  return behind;
}

const Tile *strategies_tile(const Strategies *strategies) {
  for (int i = 0; i < strategies->count; i++)
    if (strategies->items[i].kind == STRATEGY_TILE) return &strategies->items[i].tile;
  return NULL;
}

double strategy_cost(Context *context, const HostMachine *machine, const Nest *nest,
                     const NestLayouts *layouts, const Strategy *strategy) {
  if (strategy->kind == STRATEGY_ROWS) return rows_cost(context, machine, nest, layouts);
  Tile tile = strategy->tile;
  return tile_predict(context, machine, nest, layouts, &tile) ? tile_cost(machine, &tile) : -1;
}
