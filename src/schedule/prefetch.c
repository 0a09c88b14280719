// SPDX-License-Identifier: Apache-2.0
// Implements the step that loads what a later iteration of a loop reads into a cache.
//   for k:                    for k:
//     for j:              =>    if k + ahead < K:
//       C[j] += W[k, j]           for p: prefetch W[k + ahead, 16·p]
//                               for j: C[j] += W[k, j]
// With `spread`, each iteration of a loop inside prefetches a part of the lines, one part after the
// other, so that they do not wait for one another and arrive while the rest is computed:
//   for p:                    for p:
//     for k:                    for k:
//       for j:                    if p + ahead < P:
//         C[p, j] +=       =>       for q: prefetch line k * 3 + q of W[p + ahead, :, :]
//           W[p, k, j]            for j: C[p, j] += W[p, k, j]
// A prefetch changes no value, so the step needs no proof but that its addresses are elements of
// the buffer: they are the addresses that the later iteration reads.
#include "schedule/internal.h"

#include <inttypes.h>

enum { LINE_BYTES = 64 }; // of a cache line on the processors that have targets

typedef struct Prefetch {
  Schedule *schedule;
  const Stmt *loop;
  Buffer *buffer;
  Region region;      // what an iteration reads, with the loop's variable moved ahead
  Analyzer *analyzer; // has the facts of an iteration that has such a later one
  int64_t level;
  // With `spread`: the number of its iteration within one of `loop`, and how many there are.
  Expr *part;
  int64_t parts;
} Prefetch;

static Region moved_ahead(const Prefetch *p, const Region *read, int64_t ahead) {
  Context *context = p->schedule->context;
  Expr *var = p->loop->as.loop.var;
  Map vars = map_new(&context->arena);
  map_put(&vars, var, expr_add(context, var, expr_int(context, var->type, ahead)));
  int rank = p->buffer->rank;
  Region moved = {p->buffer, arena_array(&context->arena, Expr *, rank),
                  arena_array(&context->arena, Expr *, rank)};
  for (int d = 0; d < rank; d++) {
    moved.min[d] = substitute_expr(context, read->min[d], &vars);
    moved.extent[d] = substitute_expr(context, read->extent[d], &vars);
  }
  return moved;
}

static bool moves_with(const Region *region, const Expr *var) {
  bool moves = false;
  for (int d = 0; d < region->buffer->rank; d++) moves |= expr_uses(region->min[d], var);
  return moves;
}

// ---- Cache lines

// The first of the last dimensions that the region reads as one run of consecutive elements: all
// after it are read whole. The rank when the elements of the last dimension are apart.
static int first_of_run(const Region *region) {
  const Buffer *buffer = region->buffer;
  int64_t extent, shape;
  int d = buffer->rank - 1;
  if (d < 0 || buffer->strides || buffer->separator_count) return buffer->rank;
  while (d > 0 && expr_as_int(region->extent[d], &extent) &&
         expr_as_int(buffer->shape[d], &shape) && extent == shape)
    d--;
  return d;
}

// Adds to indices[first …] the `offset`-th element after the first of the run.
static void add_offset(Context *context, const Region *region, int first, Expr *offset,
                       Expr **indices) {
  for (int d = region->buffer->rank - 1; d > first; d--) {
    Expr *shape = expr_cast(context, offset->type, region->buffer->shape[d]);
    indices[d] = expr_binary(context, EXPR_FLOOR_MOD, offset, shape);
    offset = expr_binary(context, EXPR_FLOOR_DIV, offset, shape);
  }
  indices[first] =
      expr_add(context, indices[first], expr_cast(context, indices[first]->type, offset));
}

typedef Array(VarRange) VarRanges;

// The variable of a new loop; 0 for a loop of one iteration, which is left out.
static Expr *add_loop(Context *context, VarRanges *loops, Expr *extent) {
  if (expr_is_int(extent, 1)) return expr_int(context, extent->type, 0);
  Expr *var = expr_var(context, arena_printf(&context->arena, "p%d", loops->count), extent->type);
  VarRange range = {var, expr_int(context, extent->type, 0), extent};
  array_push(&context->arena, loops, range);
  return var;
}

// The number of lines of a run that begins with a line.
static Expr *lines_of_run(Context *context, const Region *region, int first, int64_t in_line) {
  Expr *elements = expr_index(context, in_line - 1);
  Expr *run = region->extent[first];
  for (int d = first + 1; d < region->buffer->rank; d++)
    run = expr_mul(context, run, expr_cast(context, run->type, region->extent[d]));
  elements = expr_add(context, expr_cast(context, run->type, elements), run);
  return expr_binary(context, EXPR_FLOOR_DIV, elements, expr_int(context, run->type, in_line));
}

// Reads under a condition can be outside of the buffer where the condition does not hold: such an
// index is moved to the nearest element.
static Expr *within(const Prefetch *p, Expr *index, Expr *shape) {
  Context *context = p->schedule->context;
  Expr *zero = expr_int(context, index->type, 0);
  Expr *last =
      expr_sub(context, expr_cast(context, index->type, shape), expr_int(context, index->type, 1));
  index = analyzer_simplify_deep(p->analyzer, index);
  if (!analyzer_prove(p->analyzer, expr_binary(context, EXPR_LE, index, last)))
    index = expr_binary(context, EXPR_MIN, index, last);
  if (!analyzer_prove(p->analyzer, expr_binary(context, EXPR_GE, index, zero)))
    index = expr_binary(context, EXPR_MAX, index, zero);
  return index;
}

static Stmt *prefetch_element(const Prefetch *p, Expr **indices) {
  Context *context = p->schedule->context;
  int rank = p->buffer->rank;
  for (int d = 0; d < rank; d++) indices[d] = within(p, indices[d], p->buffer->shape[d]);
  Expr *element = expr_load(context, p->buffer, indices, rank);
  Expr *args[3] = {expr_raw(context, EXPR_ADDRESS_OF, DTYPE_HANDLE, NULL, &element, 1),
                   expr_int(context, DTYPE_INT32, 0), expr_int(context, DTYPE_INT32, p->level)};
  return stmt_evaluate(context, expr_raw(context, EXPR_PREFETCH, DTYPE_VOID, NULL, args, 3));
}

static Stmt *prefetch_lines(const Prefetch *p) {
  Context *context = p->schedule->context;
  const Region *region = &p->region;
  int rank = p->buffer->rank, first = first_of_run(region);
  int64_t in_line = MAX_OF(LINE_BYTES / dtype_bytes(p->buffer->type), 1);
  Expr **indices = arena_copy(&context->arena, region->min, sizeof *indices * (size_t)rank);
  VarRanges loops = {0};
  for (int d = 0; d < first; d++)
    indices[d] = expr_add(
        context, indices[d],
        expr_cast(context, indices[d]->type, add_loop(context, &loops, region->extent[d])));
  if (first < rank) {
    Expr *line = add_loop(context, &loops, lines_of_run(context, region, first, in_line));
    Expr *offset = expr_mul(context, line, expr_int(context, line->type, in_line));
    add_offset(context, region, first, offset, indices);
  }
  for (int i = 0; i < loops.count; i++)
    analyzer_bind(p->analyzer, loops.items[i].var, loops.items[i].min, loops.items[i].extent);
  Stmt *s = prefetch_element(p, indices);
  for (int i = loops.count - 1; i >= 0; i--)
    s = stmt_for(context, loops.items[i].var, loops.items[i].min, loops.items[i].extent,
                 LOOP_SERIAL, s);
  return s;
}

// ---- Parts of the lines

// Finds the loops from below `loop` to the one at the end of `to`.
static bool find_parts(Prefetch *p, const Path *to, int depth) {
  Context *context = p->schedule->context;
  p->part = NULL;
  p->parts = 1;
  for (int i = depth + 1; i < to->count; i++) {
    const Stmt *loop = to->items[i];
    int64_t extent;
    if (loop->kind != STMT_FOR) continue;
    if (!expr_as_int(loop->as.loop.extent, &extent) || !mul_fits(p->parts, extent, &p->parts))
      return schedule_refuse(p->schedule, loop->pos,
                             "the number of iterations of loop '%s' is not known, so it is not "
                             "known how many lines each of them prefetches",
                             loop_name(loop));
    Expr *var = expr_sub(context, loop->as.loop.var, loop->as.loop.min);
    p->part = !p->part ? var
                       : expr_add(context,
                                  expr_mul(context, expr_cast(context, var->type, p->part),
                                           expr_int(context, var->type, extent)),
                                  var);
  }
  return true;
}

// The lines of one part, where the region is one run of memory. *runs: whether there are so many
// lines; the last lines are left out when they are fewer than a part.
static Stmt *prefetch_part(Prefetch *p, Expr **runs) {
  Context *context = p->schedule->context;
  const Region *region = &p->region;
  int rank = p->buffer->rank, first = first_of_run(region);
  int64_t lines, in_line = MAX_OF(LINE_BYTES / dtype_bytes(p->buffer->type), 1);
  bool one_run = first < rank;
  for (int d = 0; d < first && one_run; d++) one_run = expr_is_int(region->extent[d], 1);
  if (!one_run || !expr_as_int(lines_of_run(context, region, first, in_line), &lines) || lines < 1)
    return NULL;
  int64_t each = ceil_div(lines, p->parts);
  DType type = p->part->type;
  Expr *var = expr_var(context, "p0", type);
  Expr *line = expr_mul(context, p->part, expr_int(context, type, each));
  if (each * p->parts > lines)
    *runs = expr_and(context, *runs,
                     expr_binary(context, EXPR_LE, line, expr_int(context, type, lines - each)));
  line = expr_add(context, line, each > 1 ? var : expr_int(context, type, 0));
  Expr **indices = arena_copy(&context->arena, region->min, sizeof *indices * (size_t)rank);
  analyzer_bind(p->analyzer, var, expr_int(context, type, 0), expr_int(context, type, each));
  analyzer_assume(p->analyzer, *runs);
  add_offset(context, region, first, expr_mul(context, line, expr_int(context, type, in_line)),
             indices);
  Stmt *s = prefetch_element(p, indices);
  if (each == 1) return s;
  return stmt_for(context, var, expr_int(context, type, 0), expr_int(context, type, each),
                  LOOP_UNROLLED, s);
}

// ---- prefetch

static bool refuse_numbers(Schedule *schedule, const Stmt *at, int64_t ahead, int64_t level) {
  if (ahead < 1)
    return !schedule_refuse(schedule, at->pos,
                            "'ahead' is a number of iterations, at least 1; saw %" PRId64, ahead);
  if (level < 1 || level > 3)
    return !schedule_refuse(schedule, at->pos,
                            "'level' is the level of a cache, 1 to 3; saw %" PRId64, level);
  return false;
}

static bool refuse_loop(Schedule *schedule, const Stmt *loop, const Path *path, int depth,
                        const char *block) {
  if (depth >= path->count || path->items[depth] != loop)
    return !schedule_refuse(schedule, loop->pos, "block '%s' is not below loop '%s'", block,
                            loop_name(loop));
  if (loop_is_ordered(loop) || loop->as.loop.kind == LOOP_PARALLEL) return false;
  return !schedule_refuse(schedule, loop->pos,
                          "the iterations of loop '%s' do not run one after the other",
                          loop_name(loop));
}

// Finds the elements that the block reads in an iteration; false where they are not known.
static bool find_region(Prefetch *p, const Stmt *at, int64_t ahead) {
  Region read;
  AccessArray accesses = {0};
  Expr *var = p->loop->as.loop.var;
  stmt_accesses_below(p->schedule, p->analyzer, p->loop->as.loop.body, &accesses);
  if (!accesses_union(p->schedule->context, p->analyzer, &accesses, at->as.block, p->buffer, &read))
    return schedule_refuse(p->schedule, at->pos, "'%s' is not read", p->buffer->name);
  if (!moves_with(&read, var))
    return schedule_refuse(p->schedule, at->pos,
                           "block '%s' reads the same elements of '%s' in every iteration of "
                           "loop '%s'; prefetch in a loop that moves them",
                           at->as.block->name, p->buffer->name, var->as.var->name);
  p->region = moved_ahead(p, &read, ahead);
  return true;
}

// The path to the loop whose iterations prefetch: `loop`, or the one that `spread` names.
static bool find_place(Prefetch *p, const StepValue *spread, const Path *path, int depth,
                       Path *place) {
  if (spread->kind == VALUE_NONE) return true;
  if (!schedule_find_loop(p->schedule, spread->as.loop, place)) return false;
  const Stmt *inner = path_end(place);
  if (place->count <= depth + 1 || place->count > path->count ||
      path->items[place->count - 1] != inner)
    return schedule_refuse(p->schedule, inner->pos,
                           "loop '%s' is not below loop '%s' and around the block",
                           loop_name(inner), loop_name(p->loop));
  return find_parts(p, place, depth);
}

bool step_prefetch(Schedule *schedule, StepCall *call) {
  Path path, place;
  if (!schedule_find_block(schedule, call->args[0].as.block, &path) ||
      !schedule_find_loop(schedule, call->args[2].as.loop, &place))
    return false;
  Stmt *at = path_end(&path);
  int depth = place.count - 1;
  int64_t ahead = value_int_or(&call->args[3], 1), level = value_int_or(&call->args[4], 2);
  Prefetch p = {schedule, path_end(&place), .level = level};
  if (refuse_numbers(schedule, at, ahead, level) ||
      refuse_loop(schedule, p.loop, &path, depth, at->as.block->name))
    return false;
  p.buffer = schedule_buffer_of(schedule, at, false, call->args[1].as.i);
  if (!p.buffer) return false;
  int64_t iterations = loop_const_extent(p.loop);
  if (iterations >= 0 && iterations <= ahead) return true; // none is so much later
  Context *context = schedule->context;
  Expr *var = p.loop->as.loop.var;
  p.analyzer = path_analyzer(schedule, &path, depth + 1);
  if (!find_region(&p, at, ahead) || !find_place(&p, &call->args[5], &path, depth, &place))
    return false;
  Expr *later = expr_add(context, var, expr_int(context, var->type, ahead));
  Expr *end = expr_add(context, p.loop->as.loop.min, p.loop->as.loop.extent);
  Expr *runs = expr_lt(context, later, end);
  if (p.part) p.analyzer = path_analyzer(schedule, &path, place.count);
  analyzer_assume(p.analyzer, runs);
  Stmt *lines = p.part ? prefetch_part(&p, &runs) : prefetch_lines(&p);
  if (!lines)
    return schedule_refuse(schedule, at->pos,
                           "what block '%s' reads of '%s' is not one run of memory of a known "
                           "length, which the iterations of a loop could prefetch in parts",
                           at->as.block->name, p.buffer->name);
  Stmt *loop = stmt_copy(context, path_end(&place));
  Stmt *pair[2] = {stmt_if(context, runs, lines, NULL), loop->as.loop.body};
  loop->as.loop.body = stmt_seq(context, pair, 2);
  schedule_set_body(schedule, path_replace(context, &place, place.count - 1, loop));
  return true;
}
