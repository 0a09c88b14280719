// SPDX-License-Identifier: Apache-2.0
// Software pipelines of random loops: two to four statements, which use memory of the iteration and
// of other iterations, with random stages and orders. A loop is refused, or computes the same as
// before. PLEAT_RANDOM=FIRST:COUNT runs others than the fixed seeds.
#include "lower/lower.h"
#include "random_support.h"
#include "script/script.h"

#include <stdlib.h>

#include <setjmp.h>
#include <cmocka.h>

enum { MOST_PARTS = 4 };

typedef struct Loop {
  Arena *arena;
  Text text;
  int depth, parts;
  bool blocks;
} Loop;

#define FORMAT(...) arena_printf(l->arena, __VA_ARGS__)

static void line(Loop *l, const char *text) {
  text_pad(&l->text, ' ', 4 * l->depth);
  text_printf(&l->text, "%s\n", text);
}

// Parameters have rows for iterations after and before the present one.
static const char *outside(Loop *l) {
  return FORMAT("%c[i + %d, j]", "ACCD"[random_below(4)], 2 + random_below(3) - random_below(3));
}

static const char *own(Loop *l, int before) {
  return FORMAT("L%d[%s]", random_below(before), random_below(2) ? "j" : "2 - j");
}

static const char *value(Loop *l, int before) {
  const char *first = before && random_below(4) ? own(l, before) : outside(l);
  return FORMAT("%s * %d + %s", first, 1 + random_below(3), random_below(3) ? outside(l) : "i");
}

// Statement k fills the memory L<k>, which later ones read; it may write other memory too.
static void part(Loop *l, int k) {
  int depth = l->depth;
  if (l->blocks && random_below(2)) line(l, FORMAT("with T.block(\"s%d\"):", k)), l->depth++;
  bool last = k + 1 == l->parts;
  if (last && random_below(4) == 0) {
    line(l, FORMAT("if A[i, 0] < %d:", random_below(9)));
    l->depth++;
  }
  line(l, "for j in range(3):");
  l->depth++;
  const char *target = last || random_below(5) == 0 ? FORMAT("C[i + %d, j]", random_below(3))
                       : k && random_below(5) == 0  ? own(l, k)
                                                    : FORMAT("L%d[j]", k);
  line(l, FORMAT("%s = %s", target, value(l, k)));
  l->depth = depth;
}

static const char *numbers(Loop *l, const int *items, int count) {
  const char *text = FORMAT("%d", items[0]);
  for (int i = 1; i < count; i++) text = FORMAT("%s, %d", text, items[i]);
  return text;
}

static const char *annotations(Loop *l) {
  int stages[MOST_PARTS] = {0}, orders[MOST_PARTS] = {0}, stage = 0;
  for (int i = 0; i < l->parts; i++) {
    stage += random_below(3) == 0 ? random_below(3) : random_below(2);
    stages[i] = random_below(12) ? stage : random_below(3);
    orders[i] = i;
  }
  for (int i = 0; random_below(2) && i < l->parts; i++) {
    int other = random_below(l->parts), order = orders[i];
    orders[i] = orders[other];
    orders[other] = order;
  }
  return FORMAT("{\"software_pipeline_stage\": [%s], \"software_pipeline_order\": [%s]}",
                numbers(l, stages, l->parts), numbers(l, orders, l->parts));
}

static const char *random_pipeline(Arena *arena) {
  Loop loop = {arena, text_new(arena), 0, 2 + random_below(MOST_PARTS - 1), random_below(2)};
  Loop *l = &loop;
  bool free = random_below(3) == 0;
  line(l, "@T.prim_func");
  line(l, "def f(A: T.Buffer((14, 3), \"int32\"), C: T.Buffer((14, 3), \"int32\"), "
          "D: T.Buffer((14, 3), \"int32\"), n: T.int32):");
  l->depth = 1;
  if (free) line(l, "if 0 <= n and n < 8:"), l->depth++;
  const char *extent = free ? "n" : FORMAT("%d", random_below(8));
  line(l, FORMAT("for i in T.serial(%d, %s, annotations=%s):", random_below(3), extent,
                 annotations(l)));
  l->depth++;
  if (l->blocks) line(l, "with T.block(\"body\"):"), l->depth++;
  for (int k = 0; k + 1 < l->parts; k++)
    line(l, FORMAT("L%d = %s((3,), \"int32\")", k, l->blocks ? "T.alloc_buffer" : "T.decl_buffer"));
  for (int k = 0; k < l->parts; k++) part(l, k);
  return text_string(&l->text);
}

// Every element of L<k> is written before it is read, or the program is left out.
static bool is_defined(const char *text) {
  char fills[] = "L0[j] =", uses[] = "L0[";
  for (int k = 0; k < MOST_PARTS; k++) {
    fills[1] = uses[1] = (char)('0' + k);
    const char *fill = strstr(text, fills), *use = strstr(text, uses);
    if (!use) continue;
    const char *next = strstr(use + 1, uses), *end = strchr(use, '\n');
    if (use != fill || (next && next < end)) return false;
  }
  return true;
}

static int check(uint64_t number, int *refused) {
  static const char *const passes[] = {"inject_pipelines"};
  seed = number * 0x9e3779b97f4a7c15u;
  Context *context = context_new();
  const char *text = random_pipeline(&context->arena);
  Module *module = script_parse(context, source_file_new(context, "r.py", text, strlen(text)));
  if (!module) {
    diag_print_all(context, stderr);
    fail_msg("%s", text);
  }
  int changed = is_defined(text);
  if (changed) {
    LowerOptions options = {.verify_each = true, .seed = number, .module = module};
    PrimFunc *next = lower_run_passes(context, module->funcs.items[0].prim, passes, 1, &options);
    changed = next != NULL;
    *refused += !next;
    for (int i = 0; i < context->diags.count; i++)
      if (!strstr(context->diags.items[i].message, "software pipeline of loop 'i'")) {
        diag_print_all(context, stderr);
        fail_msg("seed %llu:\n%s", (unsigned long long)number, text);
      }
  }
  context_free(context);
  return changed;
}

static void test_random_loops(void **state) {
  (void)state;
  unsigned long long first = 1, seeds = 400;
  const char *asked = getenv("PLEAT_RANDOM");
  if (asked) sscanf(asked, "%llu:%llu", &first, &seeds);
  int changed = 0, refused = 0;
  for (uint64_t number = first; number < first + seeds; number++)
    changed += check(number, &refused);
  print_message("%d of %llu changed, %d refused\n", changed, seeds, refused);
  assert_true(asked || (changed > 50 && refused > 50));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_loops)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
