// SPDX-License-Identifier: Apache-2.0
// Small random programs whose loops and blocks are of forms that steps must not mistake for the
// usual ones: domains that loops cover in part or begin late, predicates, conditions around blocks,
// loops whose extents are data or other loops, sums without begin, and writes of several points to
// one element. An element that a program may leave as it was is one of a parameter, or was filled.
#ifndef PLEAT_TESTS_RANDOM_NESTS_H
#define PLEAT_TESTS_RANDOM_NESTS_H

#include "random_schedule.h"

enum { NEST_AXES = 3 };

typedef struct NestTensor {
  const char *name;
  int rank, shape[2];
} NestTensor;

typedef struct NestProgram {
  Random random;
  Arena *arena;
  Text body;
  int depth, stages, count;
  NestTensor readable[6];
} NestProgram;

typedef struct NestAxis {
  int extent;
  bool reduces;
  const char *loop, *binding, *var, *within; // within: a condition on loops; NULL: none
} NestAxis;

#define NP(...) arena_printf(p->arena, __VA_ARGS__)

static inline int nest_pick(NestProgram *p, int count) {
  return pick(&p->random, count);
}

static inline void nest_line(NestProgram *p, const char *line) {
  text_pad(&p->body, ' ', 4 * p->depth);
  text_puts(&p->body, line);
  text_puts(&p->body, "\n");
}

static inline void nest_open(NestProgram *p, const char *line) {
  nest_line(p, line);
  p->depth++;
}

// Opens the loops of an axis. `whole`: all values of its domain are taken.
static inline void nest_loops(NestProgram *p, NestAxis *axis, const char *outer, bool whole) {
  const char *i = axis->loop;
  int e = axis->extent, f = 2 + nest_pick(p, 3), rest = MAX_OF(1, e - f + 1);
  axis->binding = i;
  axis->within = NULL;
  switch (nest_pick(p, whole ? 3 : 9)) {
  case 0:
    nest_open(p, NP("for %so, %si in T.grid(%d, %d):", i, i, (e + f - 1) / f, f));
    axis->binding = NP("%so * %d + %si", i, f, i);
    if (e % f) axis->within = NP("%s < %d", axis->binding, e);
    return;
  case 3:
    nest_open(p, NP("for %s in range(%d):", i, rest));
    axis->binding = nest_pick(p, 2) ? NP("%s + %d", i, e - rest) : i;
    return;
  case 4: nest_open(p, NP("for %s in range(T.min(n, %d)):", i, e)); return;
  case 5: nest_open(p, NP("for %s in range(%s + 1):", i, outer ? outer : "0")); break;
  case 6:
    nest_open(p, NP("for %s in range(%d):", i, e));
    axis->within = NP("%d <= %s", axis->reduces ? 0 : nest_pick(p, MIN_OF(e, 2)), i); // sums begin
    return;
  case 7: nest_open(p, NP("for %s in range(%d, %d):", i, nest_pick(p, e), e)); return;
  default: nest_open(p, NP("for %s in range(%d):", i, e)); return;
  }
  axis->within = NP("%s < %d", i, e);
}

// A condition that the first point of a sum meets.
static inline const char *nest_condition(NestProgram *p, const NestAxis *axis) {
  const char *i = axis->binding == axis->loop ? axis->loop : NP("(%s)", axis->binding);
  switch (nest_pick(p, 4)) {
  case 0: return NP("%s < %d", i, 1 + nest_pick(p, axis->extent));
  case 1: return NP("%s %% 2 == 0", i);
  case 2: return NP("%s < n", i);
  default: return NP("%d <= %s", axis->reduces ? 0 : nest_pick(p, MIN_OF(axis->extent, 3)), i);
  }
}

// An index within an extent from a variable with its own.
static inline const char *nest_index(NestProgram *p, const NestAxis *axis, int extent) {
  const char *v = axis->var;
  if (axis->extent > extent)
    return nest_pick(p, 2) ? NP("%s %% %d", v, extent)
                           : NP("%s // %d", v, (axis->extent + extent - 1) / extent);
  switch (nest_pick(p, 8)) {
  case 0: return NP("%d - %s", extent - 1, v);
  case 1: return NP("T.min(%s + 1, %d)", v, extent - 1);
  case 2: return NP("%s // 2", v);
  case 3: return NP("(%s + 1) %% %d", v, extent);
  default: return v;
  }
}

static inline const char *nest_read(NestProgram *p, const NestTensor *tensor, const NestAxis *axes,
                                    int count) {
  const char *text = NP("%s[", tensor->name);
  int first = nest_pick(p, 4) ? 0 : count - 1;
  for (int d = 0; d < tensor->rank; d++) {
    const NestAxis *axis = &axes[(first + d) % count];
    text = NP("%s%s%s", text, d ? ", " : "", nest_index(p, axis, tensor->shape[d]));
  }
  return NP("%s]", text);
}

static inline const char *nest_place(NestProgram *p, const NestTensor *to, const NestAxis *axes,
                                     bool apart) {
  const char *text = NP("%s[", to->name);
  bool odd = !apart && !nest_pick(p, 3);
  int turned = nest_pick(p, to->rank + 3);
  for (int d = 0; d < to->rank; d++) {
    const char *v = axes[d].var, *index = turned == d ? NP("%d - %s", to->shape[d] - 1, v) : v;
    if (odd && nest_pick(p, 2)) {
      const char *const several[] = {NP("%s // 2", v), NP("%s %% 2", v), "0"};
      index = several[nest_pick(p, to->shape[d] > 1 ? 3 : 1)];
    }
    text = NP("%s%s%s", text, d ? ", " : "", index);
  }
  return NP("%s]", text);
}

static inline void nest_block(NestProgram *p, const NestTensor *to, NestAxis *axes, int count,
                              bool whole) {
  nest_open(p, NP("with T.block('s%d'):", p->stages++));
  const char *where = NULL;
  bool sums = false;
  for (int i = 0; i < count; i++) {
    NestAxis *axis = &axes[i];
    nest_line(p, NP("%s = T.axis.%s(%d, %s)", axis->var, axis->reduces ? "reduce" : "spatial",
                    axis->extent, axis->binding));
    if (axis->within) where = where ? NP("%s and %s", where, axis->within) : axis->within;
    sums |= axis->reduces;
  }
  if (!whole && !nest_pick(p, 6)) {
    const NestAxis *axis = &axes[nest_pick(p, count)];
    const char *more = nest_condition(p, axis);
    where = where ? NP("%s and %s", where, more) : more;
  }
  if (where) nest_line(p, NP("T.where(%s)", where));
  const char *place = nest_place(p, to, axes, whole);
  const char *read = nest_read(p, &p->readable[nest_pick(p, p->count)], axes, count);
  if (nest_pick(p, 2))
    read = NP("%s * T.float32(0.5) + %s", read,
              nest_read(p, &p->readable[nest_pick(p, p->count)], axes, count));
  if (sums && (whole || nest_pick(p, 4))) {
    nest_open(p, "with T.init():");
    nest_line(p, NP("%s = T.float32(%d)", place, nest_pick(p, 2)));
    p->depth--;
  }
  if (sums || (!whole && !nest_pick(p, 5)))
    nest_line(p, nest_pick(p, 3) ? NP("%s = %s + %s", place, place, read)
                                 : NP("%s = T.max(%s, %s)", place, place, read));
  else
    nest_line(p, NP("%s = %s", place, read));
}

// Two axes as one loop.
static inline void nest_fused(NestProgram *p, NestAxis *axes) {
  nest_open(p, NP("for f in range(%d):", axes[0].extent * axes[1].extent));
  axes[0].binding = NP("f // %d", axes[1].extent);
  axes[1].binding = NP("f %% %d", axes[1].extent);
}

static inline void nest_stage(NestProgram *p, const NestTensor *to, bool whole) {
  static const char *const loops[] = {"i", "j", "k"}, *const vars[] = {"vi", "vj", "vk"};
  NestAxis axes[NEST_AXES] = {0};
  int count = to->rank, depth = p->depth;
  for (int i = 0; i < count; i++) axes[i] = (NestAxis){.extent = to->shape[i]};
  if (nest_pick(p, 3)) axes[count++] = (NestAxis){.extent = 1 + nest_pick(p, 6), .reduces = true};
  for (int i = 0; i < count; i++) axes[i].loop = loops[i], axes[i].var = vars[i];
  int first = 0;
  if (count > 1 && !nest_pick(p, 6)) nest_fused(p, axes), first = 2;
  for (int i = first; i < count; i++) {
    bool all = whole || nest_pick(p, 2);
    const char *outer = i && axes[i - 1].binding == axes[i - 1].loop ? axes[i - 1].loop : NULL;
    nest_loops(p, &axes[i], outer, all && (whole || nest_pick(p, 3)));
    if (!whole && axes[i].binding == axes[i].loop && !nest_pick(p, 9))
      nest_open(p, NP("if %s:", nest_condition(p, &axes[i])));
  }
  nest_block(p, to, axes, count, whole);
  p->depth = depth;
}

static inline NestTensor nest_tensor(NestProgram *p, const char *name) {
  NestTensor tensor = {name, 1 + nest_pick(p, 2), {1 + nest_pick(p, 7), 1 + nest_pick(p, 5)}};
  return tensor;
}

static inline const char *nest_shape(NestProgram *p, const NestTensor *tensor) {
  return tensor->rank == 1 ? NP("(%d,)", tensor->shape[0])
                           : NP("(%d, %d)", tensor->shape[0], tensor->shape[1]);
}

static inline const char *random_nests(Arena *arena, uint64_t seed) {
  static const char *const names[] = {"B", "C"};
  NestProgram program = {{seed * 0x9e3779b97f4a7c15u + 3}, arena, text_new(arena), 1},
              *p = &program;
  NestTensor a = nest_tensor(p, "A"), d = nest_tensor(p, "D");
  p->readable[p->count++] = a;
  int stages = nest_pick(p, 3);
  for (int i = 0; i < stages; i++) {
    NestTensor to = nest_tensor(p, names[i]);
    nest_line(p, NP("%s = T.alloc_buffer(%s)", names[i], nest_shape(p, &to)));
    bool partial = nest_pick(p, 2);
    nest_stage(p, &to, true);
    if (partial) nest_stage(p, &to, false);
    p->readable[p->count++] = to;
  }
  nest_stage(p, &d, nest_pick(p, 3) == 0);
  if (!nest_pick(p, 4)) nest_stage(p, &d, false);
  return NP(HEAD "def f(A: T.Buffer(%s, 'float32'), n: T.int32, D: T.Buffer(%s, 'float32')):\n%s",
            nest_shape(p, &a), nest_shape(p, &d), text_string(&p->body));
}

#undef NP
#endif
