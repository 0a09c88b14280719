// SPDX-License-Identifier: Apache-2.0
// Random steps on a schedule: each is picked at random, with random arguments, and may be refused.
// The steps that are made must keep the results, give a well-formed program, and replay from the
// trace.
#ifndef PLEAT_TESTS_RANDOM_SCHEDULE_H
#define PLEAT_TESTS_RANDOM_SCHEDULE_H

#include "lower/lower.h"
#include "schedule_check.h"

typedef struct Random {
  uint64_t state;
} Random;

static inline int pick(Random *random, int count) {
  random->state = random->state * 6364136223846793005u + 1442695040888963407u;
  return (int)((random->state >> 33) % (uint64_t)count);
}

typedef struct Walk {
  Random random;
  Schedule *schedule;
  BlockRefs blocks;
  LoopRefs loops; // of a block picked at random
  BlockRef block;
  bool keeps_loops; // transform_layout leaves loops as they are
  bool binds;       // loops are bound to threads, and copies are in shared memory
  bool fills;       // transform_layout names the way to write padding
} Walk;

static inline void look_around(Walk *walk) {
  Context *context = schedule_context(walk->schedule);
  BlockRef root = str_intern(context, "root");
  walk->blocks.count = walk->loops.count = 0;
  schedule_get_child_blocks(walk->schedule, root, NULL, &walk->blocks);
  if (!walk->blocks.count) return;
  walk->block = walk->blocks.items[pick(&walk->random, walk->blocks.count)];
  BlockRefs inner = {0};
  schedule_get_child_blocks(walk->schedule, walk->block, NULL, &inner);
  if (inner.count && pick(&walk->random, 3))
    walk->block = inner.items[pick(&walk->random, inner.count)];
  schedule_get_loops(walk->schedule, walk->block, &walk->loops);
}

static inline LoopRef some_loop(Walk *walk) {
  return walk->loops.count ? walk->loops.items[pick(&walk->random, walk->loops.count)] : NULL;
}

static inline LoopRef other_loop(Walk *walk) {
  LoopRefs loops = {0};
  BlockRef other = walk->blocks.items[pick(&walk->random, walk->blocks.count)];
  schedule_get_loops(walk->schedule, other, &loops);
  return loops.count ? loops.items[pick(&walk->random, loops.count)] : NULL;
}

static inline BufferSlot some_slot(Walk *walk) {
  Block *block = schedule_block(walk->schedule, walk->block);
  bool write = !block->read_count || pick(&walk->random, 2);
  return (BufferSlot){write, pick(&walk->random, write ? block->write_count : block->read_count)};
}

// A random map for a rank: some axes split by 2, 3 or 4, then shuffled.
static inline const IndexMap *some_map(Walk *walk, int rank) {
  Context *context = schedule_context(walk->schedule);
  const LayoutExpr *outputs[64];
  int count = 0;
  for (int i = 0; i < rank; i++) {
    const LayoutExpr *axis = layout_axis(context, i);
    const LayoutExpr *factor = layout_const(context, 2 + pick(&walk->random, 3));
    if (pick(&walk->random, 3) || rank > 8) {
      outputs[count++] = axis;
      continue;
    }
    outputs[count++] = layout_expr(context, LAYOUT_DIV, axis, factor, NULL);
    outputs[count++] = layout_expr(context, LAYOUT_MOD, axis, factor, NULL);
  }
  for (int i = count - 1; i > 0; i--) {
    int k = pick(&walk->random, i + 1);
    const LayoutExpr *t = outputs[i];
    outputs[i] = outputs[k];
    outputs[k] = t;
  }
  return index_map_new(context, rank, NULL, count, outputs, NULL, NULL, 0);
}

static inline bool try_split(Walk *walk) {
  int64_t factors[3] = {0, 2 + pick(&walk->random, 4), 2};
  return schedule_split(walk->schedule, some_loop(walk), factors, 2 + pick(&walk->random, 2), NULL);
}
static inline bool try_fuse(Walk *walk) {
  if (walk->loops.count < 2) return false;
  int at = pick(&walk->random, walk->loops.count - 1);
  return schedule_fuse(walk->schedule, walk->loops.items + at, 2, NULL);
}
static inline bool try_reorder(Walk *walk) {
  LoopRef loops[2] = {some_loop(walk), some_loop(walk)};
  return schedule_reorder(walk->schedule, loops, 2);
}
static inline bool try_bind(Walk *walk);
static inline bool try_kind(Walk *walk) {
  if (walk->binds) return try_bind(walk);
  LoopRef loop = some_loop(walk);
  switch (pick(&walk->random, 3)) {
  case 0: return schedule_parallel(walk->schedule, loop);
  case 1: return schedule_vectorize(walk->schedule, loop);
  default: return schedule_unroll(walk->schedule, loop);
  }
}
static inline bool try_unit(Walk *walk) {
  return schedule_add_unit_loop(walk->schedule, walk->block, NULL, NULL);
}
static inline bool try_inline(Walk *walk) {
  return schedule_compute_inline(walk->schedule, walk->block);
}
static inline bool try_reverse_inline(Walk *walk) {
  return schedule_reverse_compute_inline(walk->schedule, walk->block);
}
static inline bool try_compute_at(Walk *walk) {
  return schedule_compute_at(walk->schedule, walk->block, other_loop(walk), pick(&walk->random, 2));
}
static inline bool try_reverse_compute_at(Walk *walk) {
  return schedule_reverse_compute_at(walk->schedule, walk->block, other_loop(walk),
                                     pick(&walk->random, 2));
}
static inline bool try_cache_read(Walk *walk) {
  const char *scope = walk->binds ? "shared" : "local";
  return schedule_cache_read(walk->schedule, walk->block, pick(&walk->random, 2), scope, NULL);
}
static inline bool try_cache_write(Walk *walk) {
  return schedule_cache_write(walk->schedule, walk->block, 0, walk->binds ? "shared" : "local",
                              NULL);
}
static inline bool try_text(Walk *walk, const char *format, ...) PRINTF_LIKE(2, 3);
static inline bool try_readers(Walk *walk) {
  BlockRef other = walk->blocks.items[pick(&walk->random, walk->blocks.count)];
  bool write = pick(&walk->random, 2);
  return try_text(walk, "sch.cache_%s(B, %d, 'local', consumer_blocks=['%s'%s])",
                  write ? "write" : "read", write ? 0 : pick(&walk->random, 2), other,
                  pick(&walk->random, 2) ? ", B" : "");
}
static inline bool try_inplace(Walk *walk) {
  return try_text(walk, "sch.cache_inplace(B, %d, 'local')", pick(&walk->random, 2));
}
static inline bool try_cache_index(Walk *walk) {
  return try_text(walk, "sch.cache_index(B, 'global', %d)", pick(&walk->random, 3));
}
static inline bool try_epilogue(Walk *walk) {
  BlockRef other = walk->blocks.items[pick(&walk->random, walk->blocks.count)];
  return try_text(walk, "sch.fuse_reduction_epilogue(B, '%s')", other);
}
static inline bool try_prefetch(Walk *walk) {
  return schedule_prefetch(walk->schedule, walk->block, pick(&walk->random, 2), some_loop(walk),
                           1 + pick(&walk->random, 3), 1 + pick(&walk->random, 3),
                           pick(&walk->random, 2) ? some_loop(walk) : NULL);
}
static inline bool try_decompose(Walk *walk) {
  return schedule_decompose_reduction(walk->schedule, walk->block, some_loop(walk), NULL);
}
static inline bool try_rfactor(Walk *walk) {
  return schedule_rfactor(walk->schedule, some_loop(walk), 0, NULL);
}
static inline bool try_predicate(Walk *walk) {
  Context *context = schedule_context(walk->schedule); // its conditions are rarely met by chance
  schedule_compute_inline(walk->schedule, str_intern(context, "P"));
  if (walk->loops.count)
    schedule_decompose_reduction(walk->schedule, walk->block, walk->loops.items[0], NULL);
  return schedule_predicate_reduction(walk->schedule, walk->block);
}
// Puts all buffers of a block's rank into one layout with padding, then drops the predicate.
static inline bool try_drop(Walk *walk) {
  Block *block = schedule_block(walk->schedule, walk->block);
  int rank = block->writes[0].buffer->rank;
  const IndexMap *map = some_map(walk, rank);
  for (int i = -1; i < block->read_count; i++)
    if (i < 0 || block->reads[i].buffer->rank == rank)
      schedule_transform_layout(walk->schedule, walk->block, (BufferSlot){i < 0, MAX_OF(i, 0)}, map,
                                NULL);
  return schedule_drop_padding_predicate(walk->schedule, walk->block);
}
static inline bool try_text(Walk *walk, const char *format, ...);
static inline bool try_layout(Walk *walk) {
  BufferSlot slot = some_slot(walk);
  Block *block = schedule_block(walk->schedule, walk->block);
  const Buffer *buffer = (slot.write ? block->writes : block->reads)[slot.index].buffer;
  LayoutPadding padding = {pick(&walk->random, 3) ? LAYOUT_PADDING_ANY : LAYOUT_PADDING_CONSTANT,
                           2};
  const IndexMap *map = some_map(walk, buffer->rank);
  if (walk->fills) {
    static const char *const ways[] = {"select", "branch", "after", "before"};
    return try_text(walk, "sch.transform_layout(B, ('%s', %d), %s, pad_value=2, fill='%s')",
                    slot.write ? "write" : "read", slot.index,
                    index_map_lambda(schedule_context(walk->schedule), map),
                    ways[pick(&walk->random, 4)]);
  }
  if (walk->keeps_loops)
    return try_text(walk, "sch.transform_layout(B, ('%s', %d), %s)", slot.write ? "write" : "read",
                    slot.index, index_map_lambda(schedule_context(walk->schedule), map));
  return schedule_transform_layout(walk->schedule, walk->block, slot, map, &padding);
}
static inline bool try_block_layout(Walk *walk) {
  Block *block = schedule_block(walk->schedule, walk->block);
  return schedule_transform_block_layout(walk->schedule, walk->block,
                                         some_map(walk, block->var_count));
}

// Runs steps that are text; B is the block, and l0, l1, … are its loops.
static inline bool try_text(Walk *walk, const char *format, ...) {
  Context *context = schedule_context(walk->schedule);
  va_list args;
  va_start(args, format);
  Text text = text_new(&context->arena);
  text_printf(&text, "B = sch.get_block('%s')\nl = sch.get_loops(B)\n", walk->block);
  for (int i = 0; i < walk->loops.count; i++) text_printf(&text, "l%d = l[%d]\n", i, i);
  text_puts(&text, arena_vprintf(&context->arena, format, args));
  va_end(args);
  return check_replay(walk->schedule, text_string(&text));
}
static inline int some_number(Walk *walk) {
  return pick(&walk->random, MAX_OF(walk->loops.count, 1));
}

static inline bool try_variables(Walk *walk) {
  int count = schedule_block(walk->schedule, walk->block)->var_count;
  if (count < 2) return false;
  Text order = text_new(&schedule_context(walk->schedule)->arena);
  int first = pick(&walk->random, count);
  for (int i = 0; i < count; i++) text_printf(&order, "%d,", (first + i) % count);
  return try_text(walk, "sch.reorder_block_iter_var(B, [%s])", text_string(&order));
}
static inline bool try_align(Walk *walk) {
  return try_text(walk, "sch.storage_align(B, 0, 0, %d, %d)", 1 + pick(&walk->random, 9),
                  pick(&walk->random, 4));
}
static inline bool try_widen(Walk *walk) {
  const Block *block = schedule_block(walk->schedule, walk->block);
  if (!block->write_count || !dtype_is_float(block->writes[0].buffer->type)) return false;
  return try_text(walk, "sch.unsafe_set_dtype(B, 0, 'float64')");
}
static inline bool try_tile(Walk *walk) {
  int at = some_number(walk);
  return try_text(walk, "f = sch.sample_perfect_tile(l%d, n=%d)\nsch.split(l%d, factors=f)", at,
                  1 + pick(&walk->random, 3), at);
}
static inline bool try_place(Walk *walk) {
  return try_text(walk, "p = sch.sample_compute_location(B)\nsch.compute_at(B, p)");
}

static inline bool try_reindex(Walk *walk) {
  BufferSlot slot = some_slot(walk);
  return try_text(walk, "sch.reindex(B, ('%s', %d))", slot.write ? "write" : "read", slot.index);
}
static inline bool try_reindex_cache(Walk *walk) {
  BufferSlot slot = some_slot(walk);
  int count = schedule_block(walk->schedule, walk->block)->var_count;
  const char *map = index_map_lambda(schedule_context(walk->schedule), some_map(walk, count));
  return try_text(walk, "sch.reindex_cache_%s(B, %d, 'local', %s)", slot.write ? "write" : "read",
                  slot.index, map);
}

static inline bool try_partition(Walk *walk) {
  return try_text(walk, "sch.loop_partition(l%d, factors=[%d, None, 1], preserve_unit_iters=%s)",
                  some_number(walk), 1 + pick(&walk->random, 4),
                  pick(&walk->random, 2) ? "True" : "False");
}
static inline bool try_without_units(Walk *walk) {
  int at = some_number(walk), factor = 1 + pick(&walk->random, 3);
  return pick(&walk->random, 2)
             ? try_text(walk, "sch.fuse(l%d, l%d, preserve_unit_iters=False)", at, at + 1)
             : try_text(walk, "sch.split(l%d, [None, 1, %d], preserve_unit_iters=False)", at,
                        factor);
}
static inline bool try_place_by_index(Walk *walk) {
  BlockRef other = walk->blocks.items[pick(&walk->random, walk->blocks.count)];
  return try_text(walk, "m = sch.get_loops('%s')\nsch.%scompute_at(B, m[0], index=%d)", other,
                  pick(&walk->random, 2) ? "reverse_" : "", pick(&walk->random, 4) - 2);
}

static inline bool try_blockize(Walk *walk) {
  return try_text(walk, "sch.blockize(l%d, preserve_unit_iters=%s)", some_number(walk),
                  pick(&walk->random, 2) ? "True" : "False");
}

static inline bool try_decompose_padding(Walk *walk) {
  return try_text(walk, "sch.decompose_padding(B, l%d)", some_number(walk));
}

static inline bool try_pad_einsum(Walk *walk) {
  int count = schedule_block(walk->schedule, walk->block)->var_count;
  Text padding = text_new(&schedule_context(walk->schedule)->arena);
  for (int i = 0; i < count; i++) text_printf(&padding, "%d,", 1 + pick(&walk->random, 4));
  return try_text(walk, "sch.pad_einsum(B, [%s])", text_string(&padding)) ||
         try_text(walk, "sch.pad_einsum('S', [4, %d])", 1 + pick(&walk->random, 4));
}

// The second attempt is where its conditions are met: the rows of a convolution's padded input.
static inline bool try_rolling(Walk *walk) {
  return try_text(walk, "sch.rolling_buffer(B, 0)") ||
         try_text(walk,
                  "h = sch.get_loops('C')\no, i = sch.split(h[%d], [None, %d])\n"
                  "sch.compute_at('P', o)\nsch.rolling_buffer('P', 0)",
                  pick(&walk->random, 3), 1 + pick(&walk->random, 3));
}

static inline bool try_copy_at(Walk *walk) {
  const char *to = pick(&walk->random, 2) ? "write_at" : "read_at";
  const char *scope = pick(&walk->random, 2) ? "local" : "shared";
  return try_text(walk, "sch.%s(l%d, B, %d, '%s')", to, some_number(walk), pick(&walk->random, 2),
                  scope);
}

static inline bool try_bind(Walk *walk) {
  static const char *const threads[] = {"threadIdx.x", "threadIdx.y", "blockIdx.x", "vthread.x"};
  return try_text(walk, "sch.bind(l%d, '%s')", some_number(walk), threads[pick(&walk->random, 4)]);
}
static inline bool try_merge(Walk *walk) {
  BlockRef other = walk->blocks.items[pick(&walk->random, walk->blocks.count)];
  int at = some_number(walk);
  return try_text(walk, "m = sch.get_loops('%s')\nsch.merge(l%d, m[%d])", other, at, at);
}

// One or two steps on single axes of a buffer.
static inline bool try_axes(Walk *walk) {
  BufferSlot slot = some_slot(walk);
  Block *block = schedule_block(walk->schedule, walk->block);
  const Buffer *buffer = (slot.write ? block->writes : block->reads)[slot.index].buffer;
  int axis = pick(&walk->random, MAX_OF(buffer->rank, 1)), factor = 2 + pick(&walk->random, 4);
  const char *to = slot.write ? "B, ('write', 0)" : "B, ('read', 0)";
  switch (pick(&walk->random, 5)) {
  case 0: return try_text(walk, "sch.split_axis(%s, %d, [None, %d])", to, axis, factor);
  case 1: return try_text(walk, "sch.fuse_axes(%s, [%d, %d])", to, axis, axis + 1);
  case 2:
    return try_text(walk, "sch.split_axis(%s, -1, [%d, None])\nsch.fuse_axes(%s, [0, 1])", to,
                    factor, to);
  case 3: return try_text(walk, "sch.pad_axis(%s, %d, %d)", to, axis, factor);
  default:
    return try_text(walk, "sch.split_axis(%s, 0, [None, 4])\nsch.swizzle_axes(%s, 1, 0)", to, to);
  }
}

static const struct {
  const char *name;
  bool (*run)(Walk *walk);
} tries[] = {
    {"split", try_split},
    {"fuse", try_fuse},
    {"reorder", try_reorder},
    {"kind", try_kind},
    {"unit", try_unit},
    {"compute_inline", try_inline},
    {"reverse_compute_inline", try_reverse_inline},
    {"compute_at", try_compute_at},
    {"reverse_compute_at", try_reverse_compute_at},
    {"cache_read", try_cache_read},
    {"cache_write", try_cache_write},
    {"consumer_blocks", try_readers},
    {"cache_inplace", try_inplace},
    {"cache_index", try_cache_index},
    {"fuse_reduction_epilogue", try_epilogue},
    {"prefetch", try_prefetch},
    {"decompose_reduction", try_decompose},
    {"rfactor", try_rfactor},
    {"predicate_reduction", try_predicate},
    {"drop_padding_predicate", try_drop},
    {"transform_layout", try_layout},
    {"axes", try_axes},
    {"transform_block_layout", try_block_layout},
    {"reorder_block_iter_var", try_variables},
    {"storage_align", try_align},
    {"unsafe_set_dtype", try_widen},
    {"reindex", try_reindex},
    {"reindex_cache", try_reindex_cache},
    {"loop_partition", try_partition},
    {"preserve_unit_iters", try_without_units},
    {"index", try_place_by_index},
    {"blockize", try_blockize},
    {"decompose_padding", try_decompose_padding},
    {"pad_einsum", try_pad_einsum},
    {"merge", try_merge},
    {"rolling_buffer", try_rolling},
    {"read_at or write_at", try_copy_at},
    {"sample_perfect_tile", try_tile},
    {"sample_compute_location", try_place},
};

static int through[COUNT_OF(tries)]; // how often each kind of step was made

static inline void walk_steps(Walk *walk, int steps) {
  schedule_quiet(walk->schedule, true);
  for (int i = 0; i < steps; i++) {
    look_around(walk);
    if (!walk->blocks.count) break; // only loops without a block are left
    if (!schedule_block(walk->schedule, walk->block)->write_count) continue; // it has no points
    int t = pick(&walk->random, COUNT_OF(tries));
    through[t] += tries[t].run(walk);
  }
  schedule_quiet(walk->schedule, false);
  Context *context = schedule_context(walk->schedule);
  context->error_count = context->diags.count = 0; // reports of maps that do not fit
}

// Without a predicate, and from a block that reads a box in part, a copy may read elements that
// nobody wrote; their values are poison, which must not reach a result.
static inline bool walk_is_strict(const char *trace) {
  return !strstr(trace, "drop_padding_predicate") && !strstr(trace, "cache_read") &&
         !strstr(trace, "cache_inplace") && !strstr(trace, "read_at") && !strstr(trace, "reindex");
}

// Checks the program that the steps made of `before`, on inputs in these ranges (NULL: any).
static inline void walk_check(Walk *walk, PrimFunc *before, const InterpRange *ranges,
                              const char *what) {
  Context *context = schedule_context(walk->schedule);
  const char *trace = schedule_trace(walk->schedule);
  if (getenv("SHOW")) fprintf(stderr, "%s\n%s", what, trace);
  bool fine = verify_prim_func(context, schedule_func(walk->schedule), IR_LEVEL_TENSOR);
  if (!fine) {
    diag_print_all(context, stderr);
    fprintf(stderr, "%s\n%s%s", what, trace, check_text(context, schedule_func(walk->schedule)));
  }
  assert_true(fine);
  AccessCostArray costs = schedule_access_costs(walk->schedule);
  for (int i = 0; i < costs.count; i++) assert_true(costs.items[i].lines >= 0);
  check_same_meaning_in(context, before, schedule_func(walk->schedule), walk_is_strict(trace),
                        ranges);
  check_trace(context, before, walk->schedule);
  check_forms_in(context, before, walk->schedule, ranges);
  if (!walk->binds) return;
  const LowerOptions device = {.device = true}; // refuses loops over threads inside of one another
  const PrimFunc *lowered = lower_prim_func(context, schedule_func(walk->schedule), &device);
  if (lowered) check_same_meaning_in(context, before, lowered, false, ranges);
}

#endif
