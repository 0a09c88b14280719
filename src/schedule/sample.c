// SPDX-License-Identifier: Apache-2.0
// Implements the steps that choose at random: a value, the factors of a loop, or the loop that a
// block is computed at. The choice is drawn from the schedule's state of random numbers, unless it
// is given as `decision`, and the trace has it as `decision`, so that a trace always replays to the
// same program.
#include "schedule/internal.h"

// A number from 0 to count - 1.
static int64_t draw(Schedule *schedule, int64_t count) {
  schedule->random =
      schedule->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (int64_t)((schedule->random >> 32) % (uint64_t)count);
}

void schedule_seed(Schedule *schedule, uint64_t seed) {
  schedule->random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
  draw(schedule, 1);
}

static void sampled(Schedule *schedule, StepCall *call, int64_t value) {
  StepValue result = value_int(value);
  result.sample = ++schedule->sample_count;
  step_result(schedule, call, result);
}

// ---- sample_categorical ----------------------------------------------------------------------

static double weight_of(const StepValue *value) {
  return value->kind == VALUE_INT || value->kind == VALUE_FLOAT ? value_number(value) : -1;
}

static bool check_weights(Schedule *schedule, const StepValue *candidates, const StepValue *probs) {
  int count = candidates->as.list.count;
  double sum = 0;
  bool formed = count && probs->as.list.count == count;
  for (int i = 0; i < count && formed; i++) {
    double weight = weight_of(&probs->as.list.items[i]);
    formed = weight >= 0 && candidates->as.list.items[i].kind == VALUE_INT;
    sum += weight;
  }
  return (formed && sum > 0) ||
         schedule_refuse(schedule, schedule->func->pos,
                         "candidates are integers, and each has a probability in probs that is not "
                         "negative; one is positive");
}

static int64_t draw_weighted(Schedule *schedule, const StepValue *probs) {
  const int64_t steps = INT64_C(1) << 31;
  int count = probs->as.list.count, last = 0;
  double sum = 0;
  for (int i = 0; i < count; i++) sum += weight_of(&probs->as.list.items[i]);
  double at = sum * ((double)draw(schedule, steps) / (double)steps);
  for (int i = 0; i < count; i++) {
    double weight = weight_of(&probs->as.list.items[i]);
    if (weight > 0) last = i;
    if (weight > 0 && at < weight) return i;
    at -= weight;
  }
  return last;
}

bool step_sample_categorical(Schedule *schedule, StepCall *call) {
  const StepValue *candidates = &call->args[0];
  if (!check_weights(schedule, candidates, &call->args[1])) return false;
  if (call->args[2].kind == VALUE_NONE)
    call->args[2] = value_int(draw_weighted(schedule, &call->args[1]));
  int64_t decision = call->args[2].as.i;
  if (decision < 0 || decision >= candidates->as.list.count)
    return schedule_refuse(schedule, schedule->func->pos,
                           "the decision %lld is none of the numbers 0 to %d of the candidates",
                           (long long)decision, candidates->as.list.count - 1);
  sampled(schedule, call, candidates->as.list.items[decision].as.i);
  return true;
}

// ---- Tiles -----------------------------------------------------------------------------------

enum { MOST_TILES = 16, MOST_DRAWS = 1000 };

typedef struct TileChoice {
  Schedule *schedule;
  int count;
  int64_t extent; // -1: symbolic
  int64_t factors[MOST_TILES];
} TileChoice;

// Shares `power` equal primes among the factors; all ways of sharing are equally likely.
static void share_prime(TileChoice *tile, int64_t prime, int power) {
  int bars = tile->count - 1, at = 0;
  for (int left = power + bars; left > 0; left--) {
    if (draw(tile->schedule, left) < bars) {
      bars--;
      at++;
    } else {
      tile->factors[at] *= prime;
    }
  }
}

static void draw_factors(TileChoice *tile) {
  int64_t rest = tile->extent;
  for (int i = 0; i < tile->count; i++) tile->factors[i] = 1;
  for (int64_t prime = 2; rest > 1; prime++) {
    int power = 0;
    if (prime * prime > rest) prime = rest;
    for (; rest % prime == 0; rest /= prime) power++;
    if (power) share_prime(tile, prime, power);
  }
}

static int64_t product_from(const TileChoice *tile, int from) {
  int64_t product = 1;
  for (int i = from; i < tile->count; i++) product *= tile->factors[i];
  return product;
}

static bool tile_begin(Schedule *schedule, const StepCall *call, TileChoice *tile) {
  Path path;
  if (!schedule_find_loop(schedule, call->args[0].as.loop, &path)) return false;
  const Stmt *loop = path_end(&path);
  int64_t count = call->args[1].as.i;
  *tile = (TileChoice){schedule, (int)count, loop_const_extent(loop), {0}};
  if (count >= 1 && count <= MOST_TILES) return true;
  return schedule_refuse(schedule, loop->pos, "loop '%s' is tiled into 1 to %d factors",
                         loop_name(loop), MOST_TILES);
}

// Takes the factors of the decision; a factor that does not divide what is left becomes what is
// left, and the first one is the rest.
static bool take_decision(TileChoice *tile, const StepValue *decision) {
  bool formed = decision->as.list.count == tile->count;
  int64_t rest = tile->extent;
  for (int i = tile->count - 1; i >= 0 && formed; i--) {
    const StepValue *item = &decision->as.list.items[i];
    formed = item->kind == VALUE_INT && item->as.i >= 1;
    if (!formed) break;
    tile->factors[i] = i && rest % item->as.i == 0 ? item->as.i : rest;
    rest /= tile->factors[i];
  }
  return formed || schedule_refuse(tile->schedule, tile->schedule->func->pos,
                                   "the decision is a list of %d positive factors", tile->count);
}

// Without a constant extent, or with no iterations, the first factor is what the others leave.
static bool leave_open(TileChoice *tile) {
  for (int i = 0; i < tile->count; i++) tile->factors[i] = i ? 1 : -1;
  return true;
}

static bool tile_results(TileChoice *tile, StepCall *call, StepValue *decision) {
  *decision = value_list(tile->schedule->context, tile->count);
  for (int i = 0; i < tile->count; i++) {
    decision->as.list.items[i] = value_int(tile->factors[i]);
    sampled(tile->schedule, call, tile->factors[i]);
  }
  return true;
}

// Draws factors of which the last one is at most `most`.
static void draw_perfect(TileChoice *tile, int64_t most) {
  int last = tile->count - 1, tries = 0;
  do draw_factors(tile);
  while (most >= 1 && last && tile->factors[last] > most && ++tries < MOST_DRAWS);
  if (most < 1 || !last || tile->factors[last] <= most) return;
  tile->factors[0] *= tile->factors[last];
  tile->factors[last] = 1;
}

bool step_sample_perfect_tile(Schedule *schedule, StepCall *call) {
  TileChoice tile;
  int64_t most = value_int_or(&call->args[2], 16);
  StepValue *decision = &call->args[3];
  if (!tile_begin(schedule, call, &tile)) return false;
  if (tile.extent < 1)
    leave_open(&tile);
  else if (decision->kind == VALUE_NONE)
    draw_perfect(&tile, most);
  else if (!take_decision(&tile, decision))
    return false;
  return tile_results(&tile, call, decision);
}

// The factors from `position` on have a product that `inner` divides.
static void draw_partitioned(TileChoice *tile, int position, int64_t inner) {
  int tries = 0;
  do draw_factors(tile);
  while (product_from(tile, position) % inner && ++tries < MOST_DRAWS);
}

static void repair_partition(TileChoice *tile, int position, int64_t inner) {
  if (product_from(tile, position) % inner == 0) return;
  for (int i = 0; i < tile->count; i++) tile->factors[i] = 1;
  tile->factors[position] = inner;
  tile->factors[0] *= tile->extent / inner;
}

bool step_sample_partitioned_tile(Schedule *schedule, StepCall *call) {
  TileChoice tile;
  int64_t position = value_int_or(&call->args[2], 0), inner = value_int_or(&call->args[3], 1);
  StepValue *decision = &call->args[4];
  if (!tile_begin(schedule, call, &tile)) return false;
  if (position < 0 || position >= tile.count || inner < 1)
    return schedule_refuse(schedule, schedule->func->pos,
                           "partition_pos is the number of a factor, and innerpart_factor is "
                           "positive");
  if (tile.extent < 1 || tile.extent % inner)
    leave_open(&tile);
  else if (decision->kind == VALUE_NONE)
    draw_partitioned(&tile, (int)position, inner);
  else if (!take_decision(&tile, decision))
    return false;
  if (tile.factors[0] > 0) repair_partition(&tile, (int)position, inner);
  return tile_results(&tile, call, decision);
}

// ---- sample_compute_location -----------------------------------------------------------------

// The loops around the block's first consumer, outermost first.
static int consumer_loops(Schedule *schedule, BlockRef block, Stmt ***loops) {
  Path path, consumer;
  StmtArray consumers = {0};
  if (!path_to_block(schedule, block, &path)) return 0;
  blocks_related(schedule, &path, true, &consumers);
  if (!consumers.count) return 0;
  path_to_stmt(schedule, consumers.items[0], &consumer);
  return path_loops(schedule, &consumer, consumer.count - 1, loops);
}

static bool can_move(const Schedule *schedule, BlockRef block, LoopRef loop) {
  Schedule *trial = schedule_copy(schedule);
  schedule_quiet(trial, true);
  return schedule_compute_at(trial, block, loop, true);
}

// The decision -2 is to inline the block, -1 to leave it, and others are numbers of loops around
// its first consumer. A location that is no longer possible gives way to the one before it.
bool step_sample_compute_location(Schedule *schedule, StepCall *call) {
  Context *context = schedule->context;
  Path path;
  Stmt **loops = NULL;
  IntArray places = {0};
  BlockRef block = call->args[0].as.block;
  if (!schedule_find_block(schedule, block, &path)) return false;
  int count = consumer_loops(schedule, block, &loops);
  if (can_move(schedule, block, expr_index(context, -2))) array_push(&context->arena, &places, -2);
  array_push(&context->arena, &places, -1);
  for (int i = 0; i < count; i++)
    if (can_move(schedule, block, loops[i]->as.loop.var)) array_push(&context->arena, &places, i);
  int at = places.count - 1;
  if (call->args[1].kind == VALUE_NONE)
    at = (int)draw(schedule, places.count);
  else
    while (at > 0 && places.items[at] > call->args[1].as.i) at--;
  int64_t place = places.items[at];
  call->args[1] = value_int(place);
  step_result(schedule, call,
              value_loop(place < 0 ? expr_index(context, place) : loops[place]->as.loop.var));
  return true;
}
