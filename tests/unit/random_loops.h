// SPDX-License-Identifier: Apache-2.0
// Random programs of loops without blocks, for passes that rewrite allocations: nested loops and
// conditions, allocations at any depth that are filled before they are read, virtual threads, and
// double buffers. All values are integers, so that results are equal to the last bit.
#ifndef PLEAT_TESTS_RANDOM_LOOPS_H
#define PLEAT_TESTS_RANDOM_LOOPS_H

#include "base/base.h"

enum { LOOPS_VARS = 12, LOOPS_BUFFERS = 16, LOOPS_DEEPEST = 4, LOOPS_STATEMENTS = 24 };

typedef struct LoopsBuffer {
  const char *name;
  int rows, columns; // rows 0: one axis
} LoopsBuffer;

typedef struct RandomLoops {
  uint64_t state;
  Arena *arena;
  Text text;
  const char *vars[LOOPS_VARS];
  int extents[LOOPS_VARS], var_count;
  LoopsBuffer buffers[LOOPS_BUFFERS];
  int buffer_count, names, statements;
  int threads; // of the virtual thread around, the variable t; 0: none
} RandomLoops;

#define RL(...) arena_printf(p->arena, __VA_ARGS__)

static inline int rl_below(RandomLoops *p, int n) {
  p->state = p->state * 6364136223846793005u + 1442695040888963407u;
  return (int)((p->state >> 33) % (uint64_t)n);
}

static inline void rl_line(RandomLoops *p, int depth, const char *line) {
  text_pad(&p->text, ' ', 4 * depth);
  text_puts(&p->text, line);
  text_puts(&p->text, "\n");
}

// An index within 0 ≤ index < extent.
static inline const char *rl_index(RandomLoops *p, int extent) {
  if (!p->var_count || rl_below(p, 12) == 0) return RL("%d", rl_below(p, extent));
  int at = rl_below(p, p->var_count);
  const char *v = p->vars[at], *w = p->vars[rl_below(p, p->var_count)];
  if (p->extents[at] <= extent && rl_below(p, 4)) return v;
  if (rl_below(p, 2)) return RL("(%s + %d) %% %d", v, rl_below(p, 5), extent);
  return RL("(%s * %d + %s) %% %d", v, 1 + rl_below(p, 4), w, extent);
}

static inline const char *rl_access(RandomLoops *p, const LoopsBuffer *b) {
  if (!b->rows) return RL("%s[%s]", b->name, rl_index(p, b->columns));
  // The threads' own parts of large memory: blocks, or interleaved.
  if (p->threads && b->rows >= 4 * p->threads && rl_below(p, 4)) {
    const char *inner = rl_index(p, b->rows / p->threads);
    const char *row = rl_below(p, 2) ? RL("t * %d + %s", b->rows / p->threads, inner)
                                     : RL("(%s) * %d + t", inner, p->threads);
    return RL("%s[%s, %s]", b->name, row, rl_index(p, b->columns));
  }
  return RL("%s[%s, %s]", b->name, rl_index(p, b->rows), rl_index(p, b->columns));
}

static inline const char *rl_value(RandomLoops *p, int depth) {
  int choice = rl_below(p, depth ? 8 : 3);
  if (choice == 0) return RL("%d", rl_below(p, 9) - 4);
  if (choice == 1 && p->var_count)
    return RL("(%s * %d + %d)", p->vars[rl_below(p, p->var_count)], 1 + rl_below(p, 3),
              rl_below(p, 3));
  // Mostly the buffers that were allocated last, so that others are no longer in use.
  int buffer = rl_below(p, p->buffer_count);
  if (rl_below(p, 3)) buffer = p->buffer_count - 1 - rl_below(p, MIN_OF(p->buffer_count, 2));
  if (choice < 4) return rl_access(p, &p->buffers[buffer]);
  const char *a = rl_value(p, depth - 1), *b = rl_below(p, 4) ? rl_value(p, depth - 1) : a;
  if (choice == 4) return RL("T.bitwise_and(%s * %s, 127)", a, b);
  if (choice == 5) return RL("T.max(%s, %s)", a, b);
  if (choice == 6 && p->var_count && rl_below(p, 2))
    return RL("T.if_then_else(%s > %d, %s, %s)", p->vars[rl_below(p, p->var_count)], rl_below(p, 4),
              a, b);
  return RL("(%s %s %s)", a, choice == 6 ? "-" : "+", b);
}

static inline void rl_push(RandomLoops *p, const char *var, int extent) {
  p->vars[p->var_count] = var;
  p->extents[p->var_count++] = extent;
}

// Writes all elements of `b`, from index to value.
static inline void rl_fill(RandomLoops *p, int depth, const LoopsBuffer *b) {
  int outer = p->var_count;
  const char *place = RL("%s[", b->name);
  if (b->rows) {
    const char *row = RL("f%d", p->names++);
    rl_line(p, depth++, RL("for %s in range(%d):", row, b->rows));
    rl_push(p, row, b->rows);
    place = RL("%s%s, ", place, row);
  }
  const char *column = RL("f%d", p->names++);
  rl_line(p, depth++, RL("for %s in range(%d):", column, b->columns));
  rl_push(p, column, b->columns);
  rl_line(p, depth, RL("%s%s] = %s", place, column, rl_value(p, 2)));
  p->var_count = outer;
}

static inline void rl_statements(RandomLoops *p, int depth, int count);

static inline LoopsBuffer rl_declare(RandomLoops *p, int depth) {
  static const char *const scopes[] = {"global", "global", "global", "local", "shared"};
  LoopsBuffer b = {RL("B%d", p->names++), rl_below(p, 3) ? 0 : 1 + rl_below(p, 3),
                   1 + rl_below(p, 9)};
  const char *shape = b.rows ? RL("(%d, %d)", b.rows, b.columns) : RL("(%d,)", b.columns);
  rl_line(
      p, depth,
      RL("%s = T.decl_buffer(%s, \"int32\", scope=\"%s\")", b.name, shape, scopes[rl_below(p, 5)]));
  return b;
}

static inline void rl_allocate(RandomLoops *p, int depth) {
  LoopsBuffer b = rl_declare(p, depth);
  rl_fill(p, depth, &b);
  p->buffers[p->buffer_count++] = b;
}

static inline void rl_loop(RandomLoops *p, int depth, int level) {
  const char *var = RL("i%d", p->names++);
  int extent = 1 + rl_below(p, 7), vars = p->var_count, buffers = p->buffer_count;
  rl_line(p, depth, RL("for %s in range(%d):", var, extent));
  rl_push(p, var, extent);
  rl_statements(p, depth + 1, level);
  p->var_count = vars;
  p->buffer_count = buffers;
}

static inline void rl_threads(RandomLoops *p, int depth, int level) {
  int vars = p->var_count, buffers = p->buffer_count;
  p->threads = 1 + rl_below(p, 5);
  if (rl_below(p, 8) == 0) p->threads = 17;
  rl_line(p, depth, RL("for t in T.thread_binding(%d, thread=\"vthread\"):", p->threads));
  rl_push(p, "t", p->threads);
  rl_statements(p, depth + 1, level);
  p->threads = 0;
  p->var_count = vars;
  p->buffer_count = buffers;
}

static inline void rl_double(RandomLoops *p, int depth, int level) {
  const char *var = RL("i%d", p->names++);
  int extent = 1 + rl_below(p, 7), begin = rl_below(p, 2), vars = p->var_count;
  int buffers = p->buffer_count;
  rl_line(p, depth++, RL("for %s in range(%d, %d):", var, begin, begin + extent));
  rl_push(p, var, begin + extent);
  LoopsBuffer b = rl_declare(p, depth);
  if (rl_below(p, 4) == 0) rl_statements(p, depth, level);
  if (rl_below(p, 2)) p->buffer_count = buffers;
  rl_line(p, depth, RL("with T.attr(%s.data, \"double_buffer_scope\", 1):", b.name));
  rl_fill(p, depth + 1, &b);
  p->buffers[p->buffer_count++] = b;
  rl_statements(p, depth, level);
  p->var_count = vars;
  p->buffer_count = buffers;
}

// A comparison, half of them of a loop's variable, and some with another one.
static inline const char *rl_condition(RandomLoops *p) {
  bool of_loop = p->var_count && rl_below(p, 2);
  const char *value = of_loop ? p->vars[rl_below(p, p->var_count)] : rl_value(p, 1);
  const char *first = RL("%s %s %d", value, rl_below(p, 2) ? ">" : "<", rl_below(p, 5));
  if (rl_below(p, 3)) return first;
  return RL("%s %s %s", first, rl_below(p, 3) ? "and" : "or", rl_condition(p));
}

static inline void rl_branch(RandomLoops *p, int depth, int level) {
  int buffers = p->buffer_count;
  rl_line(p, depth, RL("if %s:", rl_condition(p)));
  rl_statements(p, depth + 1, level);
  p->buffer_count = buffers;
  if (rl_below(p, 2)) return;
  rl_line(p, depth, "else:");
  rl_statements(p, depth + 1, level);
  p->buffer_count = buffers;
}

static inline void rl_store(RandomLoops *p, int depth) {
  int own = rl_below(p, 3) ? p->buffer_count - 1 - rl_below(p, MIN_OF(p->buffer_count, 3)) : 1;
  const LoopsBuffer *b = &p->buffers[own ? own : 1]; // not the first parameter
  rl_line(p, depth, RL("%s = %s", rl_access(p, b), rl_value(p, 3)));
}

static inline void rl_statements(RandomLoops *p, int depth, int level) {
  int count = 1 + rl_below(p, 4);
  for (int i = 0; i < count; i++) {
    bool small = level == 0 || p->statements >= LOOPS_STATEMENTS;
    int choice = small ? 9 : rl_below(p, 12);
    p->statements++;
    if (choice < 3 && p->buffer_count < LOOPS_BUFFERS - 4)
      rl_allocate(p, depth);
    else if (choice < 5)
      rl_loop(p, depth, level - 1);
    else if (choice == 5 && !p->threads)
      rl_threads(p, depth, level - 1);
    else if (choice == 6 && p->buffer_count < LOOPS_BUFFERS - 4)
      rl_double(p, depth, level - 1);
    else if (choice == 7)
      rl_branch(p, depth, level - 1);
    else
      rl_store(p, depth);
  }
  rl_store(p, depth);
}

static inline const char *random_loops(Arena *arena, uint64_t seed) {
  RandomLoops program = {.state = seed * 0x9e3779b97f4a7c15u + 1, .arena = arena}, *p = &program;
  p->text = text_new(arena);
  p->buffers[p->buffer_count++] = (LoopsBuffer){"A", 21, 7};
  p->buffers[p->buffer_count++] = (LoopsBuffer){"C", 24, 5};
  text_puts(&p->text, "from tvm.script import tir as T\n@T.prim_func\n"
                      "def f(A: T.Buffer((21, 7), \"int32\"), C: T.Buffer((24, 5), \"int32\")):\n");
  rl_statements(p, 1, LOOPS_DEEPEST);
  return text_string(&p->text);
}

#endif
