// SPDX-License-Identifier: Apache-2.0
// Random tensor programs with random loops, lowered with the interpreter comparing the function
// before and after every pass. PLEAT_RANDOM=first:count runs others than the fixed seeds.
#include "interp/interp.h"
#include "lower/lower.h"
#include "script/script.h"

#include <stdlib.h>

#include <setjmp.h>
#include <cmocka.h>

enum { MOST_AXES = 3, MOST_LOOPS = 2 * (MOST_AXES + 2) };

typedef struct Loop {
  int axis, part, extent; // part 0: whole, 1: outer, 2: inner
} Loop;

typedef struct Program {
  uint64_t state;
  Text text;
  int axes, extents[MOST_AXES]; // spatial
  int reductions, reduction[2];
  int factors[MOST_AXES + 2]; // 0: not split
  Loop loops[MOST_LOOPS];
  int loop_count;
} Program;

static int below(Program *p, int n) {
  p->state = p->state * 6364136223846793005u + 1442695040888963407u;
  return (int)((p->state >> 33) % (uint64_t)n);
}

static bool chance(Program *p, int percent) {
  return below(p, 100) < percent;
}

static int extent_of(const Program *p, int axis) {
  return axis < p->axes ? p->extents[axis] : p->reduction[axis - p->axes];
}

static void add_loop(Program *p, int axis, int part, int extent) {
  p->loops[p->loop_count++] = (Loop){axis, part, extent};
}

// Splits some axes, and puts the loops into a random order.
static void make_loops(Program *p) {
  static const int factors[] = {2, 3, 4, 5, 8, 16};
  p->loop_count = 0;
  for (int a = 0; a < p->axes + p->reductions; a++) {
    int factor = p->factors[a] = chance(p, 55) ? factors[below(p, COUNT_OF(factors))] : 0;
    if (!factor) add_loop(p, a, 0, extent_of(p, a));
    if (factor) add_loop(p, a, 1, (extent_of(p, a) + factor - 1) / factor);
    if (factor) add_loop(p, a, 2, factor);
  }
  for (int i = p->loop_count - 1; i > 0; i--) {
    if (chance(p, 50)) continue;
    int k = below(p, i + 1);
    Loop loop = p->loops[i];
    p->loops[i] = p->loops[k];
    p->loops[k] = loop;
  }
}

static void indent(Program *p, int depth) {
  text_pad(&p->text, ' ', 4 * depth);
}

static const char *loop_kind(Program *p, const Loop *loop, int depth, bool *vectorized) {
  bool spatial = loop->axis < p->axes;
  if (depth == 0 && spatial && chance(p, 30)) return "T.parallel";
  if (spatial && !*vectorized && chance(p, 25)) return *vectorized = true, "T.vectorized";
  if (loop->extent <= 8 && chance(p, 25)) return "T.unroll";
  return "range";
}

// The binding of an axis over its loops.
static void put_binding(Program *p, int axis) {
  const char *letter = "ijkrs";
  if (p->factors[axis])
    text_printf(&p->text, "%c1 * %d + %c2", letter[axis], p->factors[axis], letter[axis]);
  else
    text_printf(&p->text, "%c0", letter[axis]);
}

static int open_loops(Program *p, const char *block) {
  bool vectorized = false;
  for (int i = 0; i < p->loop_count; i++) {
    Loop *loop = &p->loops[i];
    indent(p, i + 2);
    const char *kind = loop_kind(p, loop, i, &vectorized);
    text_printf(&p->text, "for %c%d in %s(%d):\n", "ijkrs"[loop->axis], loop -> part, kind,
                loop -> extent);
  }
  int depth = p->loop_count + 2;
  indent(p, depth++);
  text_printf(&p->text, "with T.block(\"%s\"):\n", block);
  for (int a = 0; a < p->axes + p->reductions; a++) {
    indent(p, depth);
    text_printf(&p->text, "v%c = T.axis.%s(%d, ", "ijkrs"[a], a < p -> axes ? "spatial" : "reduce",
                extent_of(p, a));
    put_binding(p, a);
    text_puts(&p->text, ")\n");
  }
  return depth;
}

static void put_where(Program *p, int depth) {
  int count = 0;
  for (int a = 0; a < p->axes + p->reductions; a++) {
    if (!p->factors[a] || extent_of(p, a) % p->factors[a] == 0) continue;
    if (count++) {
      text_puts(&p->text, " and ");
    } else {
      indent(p, depth);
      text_puts(&p->text, "T.where(");
    }
    put_binding(p, a);
    text_printf(&p->text, " < %d", extent_of(p, a));
  }
  if (count) text_puts(&p->text, ")\n");
}

// An element of `name`, which has the spatial shape: shifted, with a guard, mirrored, or as it is.
static void put_read(Program *p, const char *name) {
  int form = below(p, 5), axis = below(p, p->axes), shift = 1 + below(p, 3);
  const char *letter = "ijk";
  if (form == 1) text_printf(&p->text, "T.if_then_else(v%c >= %d, ", letter[axis], shift);
  if (form == 2)
    text_printf(&p->text, "T.if_then_else(v%c + %d < %d, ", letter[axis], shift,
                extent_of(p, axis));
  text_printf(&p->text, "%s[", name);
  for (int a = 0; a < p->axes; a++) {
    text_printf(&p->text, "%s", a ? ", " : "");
    if (a != axis || form == 0)
      text_printf(&p->text, "v%c", letter[a]);
    else if (form == 1)
      text_printf(&p->text, "v%c - %d", letter[a], shift);
    else if (form == 2)
      text_printf(&p->text, "v%c + %d", letter[a], shift);
    else if (form == 3)
      text_printf(&p->text, "%d - v%c", extent_of(p, a) - 1, letter[a]);
    else
      text_printf(&p->text, "(v%c * %d + %d) %% %d", letter[a], shift, shift, extent_of(p, a));
  }
  text_puts(&p->text, form == 1 || form == 2 ? "], T.float32(0))" : "]");
}

static void put_place(Program *p, const char *name) {
  text_printf(&p->text, "%s[", name);
  for (int a = 0; a < p->axes; a++) text_printf(&p->text, "%sv%c", a ? ", " : "", "ijk"[a]);
  text_puts(&p->text, "]");
}

static void put_shape(Program *p) {
  text_puts(&p->text, "(");
  for (int a = 0; a < p->axes; a++) text_printf(&p->text, "%d, ", p->extents[a]);
  text_puts(&p->text, ")");
}

// to = from with an operation, or a sum (or maximum) over reductions of a guarded product.
static void put_stage(Program *p, const char *to, const char *from) {
  p->reductions = chance(p, 50) ? 1 + below(p, 2) : 0;
  for (int r = 0; r < p->reductions; r++) p->reduction[r] = 1 + below(p, 6);
  make_loops(p);
  int depth = open_loops(p, to);
  put_where(p, depth);
  if (!p->reductions) {
    indent(p, depth);
    put_place(p, to);
    text_puts(&p->text, " = ");
    put_read(p, from);
    text_puts(&p->text, " * T.float32(0.5) + ");
    put_read(p, "A");
    text_puts(&p->text, "\n");
    return;
  }
  bool window = chance(p, 70);
  indent(p, depth);
  text_puts(&p->text, "with T.init():\n");
  indent(p, depth + 1);
  put_place(p, to);
  text_puts(&p->text, " = T.float32(0)\n");
  indent(p, depth);
  put_place(p, to);
  text_puts(&p->text, " = ");
  put_place(p, to);
  text_puts(&p->text, " + ");
  const char *r = "ijkrs";
  if (window)
    text_printf(&p->text, "T.if_then_else(vi + v%c >= 1 and vi + v%c < %d, ", r[p->axes],
                r[p->axes], p->extents[0] + 1);
  text_printf(&p->text, "%s[", from);
  for (int a = 0; a < p->axes; a++)
    if (a == 0 && window)
      text_printf(&p->text, "vi + v%c - 1", r[p->axes]);
    else
      text_printf(&p->text, "%sv%c", a ? ", " : "", "ijk"[a]);
  text_printf(&p->text, "]%s * W[v%c]\n", window ? ", T.float32(0))" : "", r[p->axes]);
}

static const char *make_program(Program *p, Arena *arena, uint64_t seed) {
  static const int extents[] = {1, 2, 3, 5, 7, 8, 13, 16, 17, 20};
  *p = (Program){.state = seed * 0x9e3779b97f4a7c15u + 1, .text = text_new(arena)};
  p->axes = 1 + below(p, MOST_AXES);
  for (int a = 0; a < p->axes; a++) p->extents[a] = extents[below(p, a ? 7 : COUNT_OF(extents))];
  bool two = chance(p, 60);
  // The reductions' letters come after the spatial axes': weights are long enough for any.
  text_puts(&p->text, "@T.prim_func\ndef f(A: T.Buffer(");
  put_shape(p);
  text_puts(&p->text, ", \"float32\"), W: T.Buffer((8,), \"float32\"), B: T.Buffer(");
  put_shape(p);
  text_puts(&p->text, ", \"float32\")):\n    with T.block(\"root\"):\n");
  if (two) {
    indent(p, 2);
    text_puts(&p->text, "C = T.alloc_buffer(");
    put_shape(p);
    text_printf(&p->text, ", \"float32\"%s)\n", chance(p, 40) ? ", scope=\"local\"" : "");
    put_stage(p, "C", "A");
  }
  put_stage(p, "B", two ? "C" : "A");
  return text_string(&p->text);
}

static void check_seed(uint64_t seed) {
  Context *context = context_new();
  Program program;
  const char *text = make_program(&program, &context->arena, seed);
  Module *module = script_parse(context, source_file_new(context, "r.py", text, strlen(text)));
  PrimFunc *func = module ? module->funcs.items[0].prim : NULL;
  LowerOptions options = {.verify_each = true, .seed = seed};
  PrimFunc *lowered = func ? lower_prim_func(context, func, &options) : NULL;
  if (!lowered || context->error_count) {
    diag_print_all(context, stderr);
    fail_msg("seed %llu:\n%s", (unsigned long long)seed, text);
  }
  assert_true(lowered_kernel(context, lowered)->task_count >= 1);
  context_free(context);
}

static void test_random_programs(void **state) {
  (void)state;
  unsigned long long first = 1, count = 150;
  const char *asked = getenv("PLEAT_RANDOM");
  if (asked) sscanf(asked, "%llu:%llu", &first, &count);
  for (uint64_t seed = first; seed < first + count; seed++) check_seed(seed);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_programs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
