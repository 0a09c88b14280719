// SPDX-License-Identifier: Apache-2.0
// Every program here is lowered with --verify-each: the interpreter runs it before and after each
// pass on the same inputs. Extents are distinct, prime, 1, and no multiples of tiles.
#include "interp/interp.h"
#include "lower/lower.h"
#include "script/script.h"
#include "passes/passes.h"

#include <stdlib.h>
#include <unistd.h>

#include <glob.h>
#include <setjmp.h>
#include <cmocka.h>

typedef struct Lowered {
  Context *context;
  PrimFunc *source, *func;
  LowerReport report;
  LowerKernel *kernel;
} Lowered;

static PrimFunc *parse(Context *context, const char *text) {
  SourceFile *file = source_file_new(context, "kernel.py", text, strlen(text));
  Module *module = script_parse(context, file);
  if (module && module->funcs.count == 1 && module->funcs.items[0].prim)
    return module->funcs.items[0].prim;
  diag_print_all(context, stderr);
  fail_msg("the test's program does not parse:\n%s", text);
  return NULL;
}

// Replaces each $NAME of `text` by its value: "$H", 7, "$W", 13, NULL.
static const char *with_sizes(Arena *arena, const char *text, const char *name, ...) {
  Text out = text_new(arena);
  for (const char *p = text; *p;) {
    va_list args;
    va_start(args, name);
    const char *found = NULL;
    int value = 0;
    for (const char *n = name; n && !found; n = va_arg(args, const char *)) {
      value = va_arg(args, int);
      if (strncmp(p, n, strlen(n)) == 0) found = n;
    }
    va_end(args);
    if (found)
      text_printf(&out, "%d", value), p += strlen(found);
    else
      text_append(&out, p++, 1);
  }
  return text_string(&out);
}

static Lowered lower_text(const char *text) {
  Lowered lowered = {.context = context_new()};
  Context *context = lowered.context;
  lowered.source = parse(context, text);
  LowerOptions options = {.verify_each = true, .seed = 3, .report = &lowered.report};
  if (getenv("PRINT_AFTER")) options.print_after = getenv("PRINT_AFTER");
  lowered.func = lower_prim_func(context, lowered.source, &options);
  if (!lowered.func || context->error_count) {
    diag_print_all(context, stderr);
    fail_msg("not lowered:\n%s", text);
  }
  lowered.kernel = lower_kernel_new(context, lowered.func, NULL);
  return lowered;
}

static void done(Lowered *lowered) {
  context_free(lowered->context);
}

typedef struct Counts {
  int ifs, stores, loops, loads, gathers, allocations;
} Counts;

static bool count_stmt(Visitor *visitor, Stmt *s) {
  Counts *counts = visitor->env;
  counts->ifs += s->kind == STMT_IF;
  counts->stores += s->kind == STMT_STORE;
  counts->loops += s->kind == STMT_FOR;
  counts->allocations += s->kind == STMT_ALLOCATE;
  return true;
}

static bool count_expr(Visitor *visitor, Expr *e) {
  Counts *counts = visitor->env;
  counts->ifs += e->op == EXPR_IF_THEN_ELSE;
  counts->loads += e->op == EXPR_LOAD;
  return true;
}

static Counts counts_of(Stmt *s) {
  Counts counts = {0};
  Visitor visitor = {.env = &counts, .enter_expr = count_expr, .enter_stmt = count_stmt};
  visit_stmt(&visitor, s);
  return counts;
}

// ---- The table

static void test_table_is_in_order(void **state) {
  (void)state;
  unsigned facts = 0, needed = LOWER_FACTS_ALL;
  int count = 0;
  for (const LowerPass *pass = lower_passes; pass->name; pass++, count++) {
    assert_int_equal(pass->needs & ~facts, 0);
    assert_ptr_equal(lower_pass_find(pass->name), pass); // names are unique
    assert_true(strlen(pass->summary) > 0);
    facts = (facts & ~pass->breaks) | pass->gives;
    needed &= ~pass->gives;
  }
  assert_true(count <= LOWER_MAX_PASSES);
  assert_int_equal(facts, LOWER_FACTS_ALL);
  assert_int_equal(needed, 0); // a pass gives each fact
  assert_int_equal(1 << LOWER_FACT_COUNT, LOWER_FACTS_ALL + 1);
  assert_int_equal(lower_pass_index("no_such_pass"), -1);
  for (int i = 0; i < LOWER_COUNT_KINDS; i++) assert_non_null(lower_count_name(i));
}

// tests/cases/lower holds a text case named after each pass.
static void test_passes_have_cases(void **state) {
  (void)state;
  const LowerPass *pass;
  for (int k = 0; (pass = lower_pass_at(k)); k++) {
    char path[512];
    int folder = (int)(strrchr(__FILE__, '/') - __FILE__);
    snprintf(path, sizeof path, "%.*s/../cases/lower/%s.py", folder, __FILE__, pass->name);
    if (access(path, R_OK) != 0) fail_msg("no text case for the pass %s: %s", pass->name, path);
  }
}

static bool case_runs(Context *context, const char *path, const char *pass) {
  size_t size;
  const char *text = file_read(context, &context->arena, path, &size);
  for (const char *at = text; at && (at = strstr(at, "# RUN"));) {
    const char *end = strchr(at, '\n'), *found = strstr(at, pass);
    if (found && end && found < end) return true;
    at = end;
  }
  return false;
}

// A text case, tests/cases/cli/graph_*.py or tests/cases/lower/*.py, runs each pass over graph
// functions or modules.
static void test_graph_passes_have_cases(void **state) {
  (void)state;
  Context *context = context_new();
  int folder = (int)(strrchr(__FILE__, '/') - __FILE__);
  glob_t files;
  assert_int_equal(
      glob(arena_printf(&context->arena, "%.*s/../cases/{cli/graph_,lower/}*.py", folder, __FILE__),
           GLOB_BRACE, NULL, &files),
      0);
  for (const GraphPass *pass = graph_passes; pass->name; pass++) {
    bool runs = false;
    for (size_t i = 0; i < files.gl_pathc; i++)
      runs |= case_runs(context, files.gl_pathv[i], pass->name);
    if (!runs) fail_msg("no text case for the pass %s", pass->name);
  }
  globfree(&files);
  context_free(context);
}

// Each reason names two passes of the table, in that order.
static void test_orders_are_kept(void **state) {
  (void)state;
  assert_null(lower_order_broken());
  for (const LowerOrder *order = lower_orders; order->before; order++) {
    assert_true(lower_pass_index(order->before) >= 0);
    assert_true(lower_pass_index(order->before) < lower_pass_index(order->after));
    assert_true(strlen(order->because) > 0);
  }
}

static void test_needs_are_reported(void **state) {
  (void)state;
  Context *context = context_new();
  PrimFunc *func = parse(context, "@T.prim_func\n"
                                  "def f(A: T.Buffer((4,), \"float32\")):\n"
                                  "    for i in range(4):\n"
                                  "        with T.block(\"b\"):\n"
                                  "            v = T.axis.spatial(4, i)\n"
                                  "            A[v] = T.float32(1)\n");
  const char *unknown[] = {"flaten_buffers"}, *early[] = {"flatten_buffers"};
  assert_null(lower_run_passes(context, func, unknown, 1, NULL));
  assert_string_equal(context->diags.items[0].message,
                      "unknown pass 'flaten_buffers'; did you mean 'flatten_buffers'?\n"
                      "'pleat opt --list' prints the passes");
  assert_null(lower_run_passes(context, func, early, 1, NULL));
  assert_string_equal(context->diags.items[1].message,
                      "flatten_buffers cannot run on f, which has blocks or jumps; run "
                      "convert_blocks (LowerOpaqueBlock) first");
  context_free(context);
}

// ---- Elementwise and reductions

static void test_elementwise_with_a_tail(void **state) {
  (void)state;
  static const char text[] =
      "@T.prim_func\n"
      "def f(A: T.Buffer(($N,), \"float32\"), B: T.Buffer(($N,), \"float32\")):\n"
      "    for io in range($T):\n"
      "        for ii in T.vectorized(16):\n"
      "            with T.block(\"b\"):\n"
      "                v = T.axis.spatial($N, io * 16 + ii)\n"
      "                T.where(io * 16 + ii < $N)\n"
      "                B[v] = A[v] * T.float32(2) + T.float32(1)\n";
  const int sizes[] = {1, 15, 16, 17, 101, 160};
  for (int i = 0; i < COUNT_OF(sizes); i++) {
    Context *scratch = context_new();
    Lowered lowered = lower_text(
        with_sizes(&scratch->arena, text, "$N", sizes[i], "$T", (sizes[i] + 15) / 16, NULL));
    assert_int_equal(counts_of(lowered.func->body).ifs, 0);
    assert_int_equal(lowered.report.counts[LOWER_SCALARIZED], 0);
    assert_int_equal(lowered.kernel->region_count, 1);
    assert_int_equal(lowered.kernel->arg_count, 2);
    done(&lowered);
    context_free(scratch);
  }
}

static void test_symbolic_size(void **state) {
  (void)state;
  Lowered lowered = lower_text("@T.prim_func\n"
                               "def f(a: T.handle, b: T.handle):\n"
                               "    n = T.int32()\n"
                               "    A = T.match_buffer(a, (n,), \"float32\")\n"
                               "    B = T.match_buffer(b, (n,), \"float32\")\n"
                               "    for io in range((n + 3) // 4):\n"
                               "        for ii in T.vectorized(4):\n"
                               "            with T.block(\"b\"):\n"
                               "                v = T.axis.spatial(n, io * 4 + ii)\n"
                               "                T.where(io * 4 + ii < n)\n"
                               "                B[v] = A[v] + T.float32(3)\n");
  assert_int_equal(lowered.kernel->arg_count, 3);
  const LowerArg *n = &lowered.kernel->args[2];
  assert_int_equal(n->kind, LOWER_ARG_SYMBOL);
  assert_string_equal(n->name, "n");
  assert_int_equal(n->tensor, 0);
  assert_int_equal(n->axis, 0);
  assert_int_equal(lowered.report.counts[LOWER_VECTORIZED], 2);
  done(&lowered);
}

static void test_softmax_with_inits(void **state) {
  (void)state;
  Lowered lowered =
      lower_text("@T.prim_func\n"
                 "def f(A: T.Buffer((5, 7), \"float32\"), B: T.Buffer((5, 7), \"float32\")):\n"
                 "    with T.block(\"root\"):\n"
                 "        M = T.alloc_buffer((5,), \"float32\")\n"
                 "        S = T.alloc_buffer((5,), \"float32\")\n"
                 "        for i in T.parallel(5):\n"
                 "            for k in range(7):\n"
                 "                with T.block(\"max\"):\n"
                 "                    vi, vk = T.axis.remap(\"SR\", [i, k])\n"
                 "                    with T.init():\n"
                 "                        M[vi] = T.float32(-1e30)\n"
                 "                    M[vi] = T.max(M[vi], A[vi, vk])\n"
                 "            for k in range(7):\n"
                 "                with T.block(\"sum\"):\n"
                 "                    vi, vk = T.axis.remap(\"SR\", [i, k])\n"
                 "                    with T.init():\n"
                 "                        S[vi] = T.float32(0)\n"
                 "                    S[vi] = S[vi] + T.exp(A[vi, vk] - M[vi])\n"
                 "            for j in range(7):\n"
                 "                with T.block(\"out\"):\n"
                 "                    vi, vj = T.axis.remap(\"SS\", [i, j])\n"
                 "                    B[vi, vj] = T.exp(A[vi, vj] - M[vi]) / S[vi]\n");
  assert_int_equal(counts_of(lowered.func->body).ifs, 0); // first iterations are peeled
  assert_int_equal(lowered.kernel->slot_count, 0);        // M and S shrank to one element
  assert_int_equal(lowered.kernel->region_count, 1);
  assert_int_equal(lowered.kernel->regions[0].extent->as.i, 5);
  done(&lowered);
}

static void test_vectorized_reduction(void **state) {
  (void)state;
  Lowered lowered =
      lower_text("@T.prim_func\n"
                 "def f(A: T.Buffer((3, 24), \"float32\"), B: T.Buffer((3,), \"float32\")):\n"
                 "    for i in range(3):\n"
                 "        B[i] = T.float32(0)\n"
                 "        for ko in range(3):\n"
                 "            for ki in T.vectorized(8):\n"
                 "                B[i] = B[i] + A[i, ko * 8 + ki]\n");
  assert_int_equal(lowered.report.counts[LOWER_SCALARIZED], 0);
  done(&lowered);
}

// ---- Convolution: tiles, padding, registers

static const char conv_text[] =
    "@T.prim_func\n"
    "def conv(X: T.Buffer(($CI, $H, $W, 4), \"float32\"),\n"
    "         K: T.Buffer(($CO, $CI, 3, 3, 4, 4), \"float32\"),\n"
    "         Y: T.Buffer(($CO, $H, $W, 4), \"float32\")):\n"
    "    with T.block(\"root\"):\n"
    "        acc = T.alloc_buffer(($CO, $H, $W, 4), \"float32\", scope=\"local\")\n"
    "        for co in T.parallel($CO):\n"
    "            for h in range($H):\n"
    "                for wo in range($T):\n"
    "                    for wi in T.unroll($M):\n"
    "                        for o in T.vectorized(4):\n"
    "                            with T.block(\"init\"):\n"
    "                                vc, vh = T.axis.remap(\"SS\", [co, h])\n"
    "                                vw = T.axis.spatial($W, wo * $M + wi)\n"
    "                                vo = T.axis.spatial(4, o)\n"
    "                                T.where(wo * $M + wi < $W)\n"
    "                                acc[vc, vh, vw, vo] = T.float32(0)\n"
    "                    for ci in range($CI):\n"
    "                        for kh in range(3):\n"
    "                            for kw in T.unroll(3):\n"
    "                                for i in range(4):\n"
    "                                    for wi in T.unroll($M):\n"
    "                                        for o in T.vectorized(4):\n"
    "                                            with T.block(\"update\"):\n"
    "                                                vc, vh = T.axis.remap(\"SS\", [co, h])\n"
    "                                                vw = T.axis.spatial($W, wo * $M + wi)\n"
    "                                                vo = T.axis.spatial(4, o)\n"
    "                                                vci, vkh, vkw, vi = T.axis.remap(\"RRRR\", "
    "[ci, kh, kw, i])\n"
    "                                                T.where(wo * $M + wi < $W)\n"
    "                                                acc[vc, vh, vw, vo] = acc[vc, vh, vw, vo] + "
    "T.if_then_else(vh + vkh >= 1 and vh + vkh < $H + 1 and vw + vkw >= 1 and vw + vkw < $W + 1, "
    "X[vci, vh + vkh - 1, vw + vkw - 1, vi], T.float32(0)) * K[vc, vci, vkh, vkw, vi, vo]\n"
    "                    for wi in T.unroll($M):\n"
    "                        for o in T.vectorized(4):\n"
    "                            with T.block(\"store\"):\n"
    "                                vc, vh = T.axis.remap(\"SS\", [co, h])\n"
    "                                vw = T.axis.spatial($W, wo * $M + wi)\n"
    "                                vo = T.axis.spatial(4, o)\n"
    "                                T.where(wo * $M + wi < $W)\n"
    "                                Y[vc, vh, vw, vo] = T.max(acc[vc, vh, vw, vo], "
    "T.float32(0))\n";

static void check_conv(int ci, int co, int h, int w, int m) {
  Context *scratch = context_new();
  const char *text = with_sizes(&scratch->arena, conv_text, "$CI", ci, "$CO", co, "$H", h, "$W", w,
                                "$M", m, "$T", (w + m - 1) / m, NULL);
  Lowered lowered = lower_text(text);
  assert_int_equal(counts_of(lowered.func->body).ifs, 0);
  assert_int_equal(lowered.report.counts[LOWER_SCALARIZED], 0);
  assert_int_equal(lowered.report.counts[LOWER_NOT_PARTITIONED], 0);
  assert_int_equal(lowered.report.counts[LOWER_NOT_REGISTERS], 0);
  assert_int_equal(lowered.report.counts[LOWER_GATHERS], 0);
  assert_true(lowered.report.counts[LOWER_REGISTERS] >= MIN_OF(m, w));
  assert_int_equal(lowered.kernel->slot_count, 0);
  done(&lowered);
  context_free(scratch);
}

static void test_convolution_has_no_conditions_left(void **state) {
  (void)state;
  check_conv(2, 3, 5, 20, 5); // whole tiles: left, middle, right
  check_conv(1, 2, 7, 17, 5); // a tail, which is also the right border
  check_conv(2, 1, 1, 4, 4);  // one tile, one row
  check_conv(1, 1, 3, 11, 2); // a tail of one
  check_conv(1, 2, 2, 1, 3);  // narrower than the tile
}

// ---- Memory

static void test_regions_and_workspace(void **state) {
  (void)state;
  // Two parallel loops with a tensor between them, and one that shares its memory.
  Lowered lowered = lower_text("@T.prim_func\n"
                               "def f(A: T.Buffer((7, 3000), \"float32\"),\n"
                               "      B: T.Buffer((7, 3000), \"float32\")):\n"
                               "    with T.block(\"root\"):\n"
                               "        P = T.alloc_buffer((7, 3000), \"float32\")\n"
                               "        Q = T.alloc_buffer((7, 3000), \"float32\")\n"
                               "        R = T.alloc_buffer((7, 3000), \"float32\")\n"
                               "        for i in T.parallel(7):\n"
                               "            for j in range(3000):\n"
                               "                with T.block(\"p\"):\n"
                               "                    vi, vj = T.axis.remap(\"SS\", [i, j])\n"
                               "                    P[vi, vj] = A[vi, vj] * T.float32(2)\n"
                               "        for i in T.parallel(7):\n"
                               "            for j in range(3000):\n"
                               "                with T.block(\"q\"):\n"
                               "                    vi, vj = T.axis.remap(\"SS\", [i, j])\n"
                               "                    Q[vi, vj] = P[6 - vi, vj]\n"
                               "        for i in T.parallel(7):\n"
                               "            for j in range(3000):\n"
                               "                with T.block(\"r\"):\n"
                               "                    vi, vj = T.axis.remap(\"SS\", [i, j])\n"
                               "                    R[vi, vj] = Q[vi, 2999 - vj]\n"
                               "        for i in range(7):\n"
                               "            for j in range(3000):\n"
                               "                with T.block(\"b\"):\n"
                               "                    vi, vj = T.axis.remap(\"SS\", [i, j])\n"
                               "                    B[vi, vj] = R[6 - vi, vj] + A[vi, vj]\n");
  LowerKernel *kernel = lowered.kernel;
  assert_int_equal(kernel->region_count, 4);
  assert_int_equal(kernel->slot_count, 3);
  assert_int_equal(kernel->workspace_bytes->as.i, 2 * 84032); // P and R share
  assert_int_equal(kernel->regions[0].extent->as.i, 7);
  assert_int_equal(kernel->regions[3].extent->as.i, 1);
  assert_string_equal(kernel->regions[1].name, "f_2");
  done(&lowered);
}

static void test_large_memory_of_a_task(void **state) {
  (void)state;
  Lowered lowered = lower_text("@T.prim_func\n"
                               "def f(A: T.Buffer((3, 20000), \"float32\"),\n"
                               "      B: T.Buffer((3, 20000), \"float32\")):\n"
                               "    with T.block(\"root\"):\n"
                               "        P = T.alloc_buffer((3, 20000), \"float32\")\n"
                               "        for i in T.parallel(3):\n"
                               "            for j in range(20000):\n"
                               "                with T.block(\"p\"):\n"
                               "                    vi, vj = T.axis.remap(\"SS\", [i, j])\n"
                               "                    P[vi, vj] = A[vi, vj] * T.float32(2)\n"
                               "            for j in range(20000):\n"
                               "                with T.block(\"q\"):\n"
                               "                    vi, vj = T.axis.remap(\"SS\", [i, j])\n"
                               "                    B[vi, vj] = P[vi, 19999 - vj]\n");
  assert_int_equal(lowered.kernel->region_count, 1);
  assert_int_equal(lowered.kernel->slot_count, 1);
  assert_true(lowered.kernel->workspace_bytes->as.i >= 3 * 80000);
  done(&lowered);
}

static void test_a_value_carried_by_a_loop(void **state) {
  (void)state;
  // P is read where an earlier iteration wrote it: it must stay outside of the loop.
  Lowered lowered =
      lower_text("@T.prim_func\n"
                 "def f(A: T.Buffer((9,), \"float32\"), B: T.Buffer((9,), \"float32\")):\n"
                 "    with T.block(\"root\"):\n"
                 "        P = T.alloc_buffer((10,), \"float32\")\n"
                 "        P[0] = T.float32(1)\n"
                 "        for i in range(9):\n"
                 "            with T.block(\"p\"):\n"
                 "                v = T.axis.opaque(9, i)\n"
                 "                P[v + 1] = A[v] + P[v]\n"
                 "            with T.block(\"b\"):\n"
                 "                v = T.axis.spatial(9, i)\n"
                 "                B[v] = P[v]\n");
  done(&lowered);
}

static void test_views_and_aliases(void **state) {
  (void)state;
  Lowered lowered =
      lower_text("@T.prim_func\n"
                 "def f(A: T.Buffer((4, 6, 5), \"float32\"), B: T.Buffer((120,), \"float32\")):\n"
                 "    flat = T.decl_buffer((120,), \"float32\", data=A.data)\n"
                 "    for i in range(4):\n"
                 "        with T.block(\"v\"):\n"
                 "            vi = T.axis.spatial(4, i)\n"
                 "            V = T.match_buffer(A[vi, 2:5, 0:5], (3, 5), \"float32\")\n"
                 "            for j, k in T.grid(3, 5):\n"
                 "                V[j, k] = V[j, k] + T.float32(1)\n"
                 "    for i in range(120):\n"
                 "        with T.block(\"b\"):\n"
                 "            vi = T.axis.spatial(120, i)\n"
                 "            B[vi] = flat[119 - vi]\n");
  done(&lowered);
}

// The allocation encloses the declaration of its other name.
static void test_alias_of_an_allocation(void **state) {
  (void)state;
  Lowered lowered =
      lower_text("@T.prim_func\n"
                 "def f(A: T.Buffer((3, 7), \"float32\"), B: T.Buffer((3, 7), \"float32\")):\n"
                 "    with T.block(\"root\"):\n"
                 "        C = T.alloc_buffer((3, 7), \"float32\")\n"
                 "        V = T.decl_buffer((21,), \"float32\", data=C.data)\n"
                 "        for i in T.parallel(3):\n"
                 "            for j in range(7):\n"
                 "                with T.block(\"c\"):\n"
                 "                    vi, vj = T.axis.remap(\"SS\", [i, j])\n"
                 "                    V[vi * 7 + vj] = A[vi, vj]\n"
                 "        for i, j in T.grid(3, 7):\n"
                 "            with T.block(\"b\"):\n"
                 "                vi, vj = T.axis.remap(\"SS\", [i, j])\n"
                 "                B[vi, vj] = C[2 - vi, vj]\n");
  done(&lowered);
}

// A definition whose use cannot be a vector cannot be one either, and runs lane by lane.
static void test_definition_that_stays_scalar(void **state) {
  (void)state;
  Lowered lowered =
      lower_text("@T.prim_func\n"
                 "def f(A: T.Buffer((8,), \"int32\"), B: T.Buffer((8,), \"int32\")):\n"
                 "    for i in T.vectorized(8):\n"
                 "        x = A[i] + 3\n"
                 "        B[i] = T.if_then_else(x > 3 and x < 8, A[x], x)\n");
  assert_int_equal(lowered.report.counts[LOWER_SCALARIZED], 1);
  done(&lowered);
}

// Select computes both values, so its condition on k does not permit to read A[k] outside.
static void test_select_reads_both_sides(void **state) {
  (void)state;
  Lowered lowered = lower_text("@T.prim_func\n"
                               "def f(A: T.Buffer((7,), \"int32\"), B: T.Buffer((7,), \"int32\"), "
                               "K: T.Buffer((1,), \"int32\")):\n"
                               "    for i in range(7):\n"
                               "        with T.block(\"b\"):\n"
                               "            vi = T.axis.spatial(7, i)\n"
                               "            B[vi] = T.Select(vi == K[0], A[vi], 1)\n");
  done(&lowered);
}

static void test_strided_and_offset_arguments(void **state) {
  (void)state;
  Lowered lowered = lower_text("@T.prim_func\n"
                               "def f(a: T.handle, B: T.Buffer((4, 5), \"float32\")):\n"
                               "    A = T.match_buffer(a, (4, 5), \"float32\", strides=(11, 2))\n"
                               "    for i, j in T.grid(4, 5):\n"
                               "        with T.block(\"b\"):\n"
                               "            vi, vj = T.axis.remap(\"SS\", [i, j])\n"
                               "            B[vi, vj] = A[vi, vj]\n");
  done(&lowered);
}

static void test_texture_keeps_two_axes(void **state) {
  (void)state;
  Lowered lowered =
      lower_text("@T.prim_func\n"
                 "def f(a: T.handle, B: T.Buffer((3, 5, 4), \"float32\")):\n"
                 "    A = T.match_buffer(a, (3, 5, 4), \"float32\", axis_separators=[1])\n"
                 "    for i, j, k in T.grid(3, 5, 4):\n"
                 "        with T.block(\"b\"):\n"
                 "            vi, vj, vk = T.axis.remap(\"SSS\", [i, j, k])\n"
                 "            B[vi, vj, vk] = A[2 - vi, vj, vk]\n");
  done(&lowered);
}

static void test_more_than_int32(void **state) {
  (void)state;
  Context *context = context_new();
  PrimFunc *func = parse(context, "@T.prim_func\n"
                                  "def f(A: T.Buffer((70000, 70000), \"int8\")):\n"
                                  "    for i, j in T.grid(70000, 70000):\n"
                                  "        with T.block(\"b\"):\n"
                                  "            vi, vj = T.axis.remap(\"SS\", [i, j])\n"
                                  "            A[vi, vj] = T.int8(1)\n");
  LowerOptions options = {.verify = true};
  func = lower_prim_func(context, func, &options);
  assert_non_null(func);
  Stmt *s = lower_kernel_new(context, func, NULL)->regions[0].body;
  while (s->kind != STMT_STORE)
    s = s->kind == STMT_FOR   ? s->as.loop.body
        : s->kind == STMT_LET ? s->as.let.body
                              : s->as.declare.body;
  assert_int_equal(s->as.store.indices[0]->type.bits, 64);
  context_free(context);
}

// ---- Loops

static void test_parallel_inside_is_serial(void **state) {
  (void)state;
  Lowered lowered =
      lower_text("@T.prim_func\n"
                 "def f(A: T.Buffer((4, 5), \"float32\"), B: T.Buffer((4, 5), \"float32\")):\n"
                 "    for i in range(4):\n"
                 "        for j in T.parallel(5):\n"
                 "            with T.block(\"b\"):\n"
                 "                vi, vj = T.axis.remap(\"SS\", [i, j])\n"
                 "                B[vi, vj] = A[vi, vj] + T.float32(1)\n");
  assert_int_equal(lowered.report.counts[LOWER_SERIALIZED], 1);
  assert_int_equal(lowered.kernel->regions[0].extent->as.i, 1);
  done(&lowered);
}

static void test_padding_is_partitioned(void **state) {
  (void)state;
  Lowered lowered = lower_text(
      "@T.prim_func\n"
      "def f(A: T.Buffer((7, 11), \"float32\"), B: T.Buffer((9, 15), \"float32\")):\n"
      "    for i, j in T.grid(9, 15):\n"
      "        with T.block(\"b\"):\n"
      "            vi, vj = T.axis.remap(\"SS\", [i, j])\n"
      "            B[vi, vj] = T.if_then_else(vi >= 1 and vi < 8 and vj >= 2 and vj < 13,\n"
      "                                       A[vi - 1, vj - 2], T.float32(0))\n");
  assert_int_equal(counts_of(lowered.func->body).ifs, 0);
  assert_int_equal(lowered.report.counts[LOWER_PARTITIONED], 2);
  done(&lowered);
}

static void test_parallel_tail_has_two_versions(void **state) {
  (void)state;
  Lowered lowered = lower_text("@T.prim_func\n"
                               "def f(A: T.Buffer((101,), \"float32\"),\n"
                               "      B: T.Buffer((101,), \"float32\")):\n"
                               "    for io in T.parallel(7):\n"
                               "        for ii in T.vectorized(16):\n"
                               "            with T.block(\"b\"):\n"
                               "                v = T.axis.spatial(101, io * 16 + ii)\n"
                               "                T.where(io * 16 + ii < 101)\n"
                               "                B[v] = A[v] + T.float32(1)\n");
  assert_int_equal(counts_of(lowered.func->body).ifs, 1); // which version
  assert_int_equal(lowered.report.counts[LOWER_SCALARIZED], 0);
  done(&lowered);
}

static void test_lanes_that_gather(void **state) {
  (void)state;
  Lowered lowered =
      lower_text("@T.prim_func\n"
                 "def f(A: T.Buffer((8, 5), \"float32\"), B: T.Buffer((5, 8), \"float32\")):\n"
                 "    for i in range(5):\n"
                 "        for j in T.vectorized(8):\n"
                 "            with T.block(\"b\"):\n"
                 "                vi, vj = T.axis.remap(\"SS\", [i, j])\n"
                 "                B[vi, vj] = A[vj, vi] * T.if_then_else(vj < 3, T.float32(2), "
                 "T.float32(3))\n");
  assert_int_equal(lowered.report.counts[LOWER_GATHERS], 1);
  assert_int_equal(lowered.report.counts[LOWER_SCALARIZED], 0);
  assert_string_equal(lowered.report.notes.items[0],
                      "accesses of A along loop j are not contiguous: the stride is 5, as A[0, i] "
                      "is at i and A[1, i] at i + 5");
  done(&lowered);
}

// Vectors of 13 lanes are cut into pieces, of which the first is described.
static void test_lanes_that_jump(void **state) {
  (void)state;
  Lowered lowered =
      lower_text("@T.prim_func\n"
                 "def f(A: T.Buffer((13, 3, 4), \"float32\"), B: T.Buffer((13, 5), \"float32\", "
                 "axis_separators=[1]), C: T.Buffer((13,), \"float32\")):\n"
                 "    for i in T.vectorized(13):\n"
                 "        with T.block(\"B\"):\n"
                 "            vi = T.axis.remap(\"S\", [i])\n"
                 "            B[vi, 3] = T.float32(1)\n"
                 "    for i in T.vectorized(13):\n"
                 "        with T.block(\"C\"):\n"
                 "            vi = T.axis.remap(\"S\", [i])\n"
                 "            C[vi] = A[vi // 4, 2, vi % 4]\n");
  const PtrArray *notes = &lowered.report.notes;
  assert_int_equal(notes->count, 2);
  assert_string_equal(notes->items[0],
                      "accesses of B along loop i move along axis 0 of its memory, "
                      "not along the last one, as B[0, 3] and B[1, 3]");
  assert_string_equal(notes->items[1], "accesses of A along loop i are not contiguous: the stride "
                                       "differs between iterations, as A[0, 2, 3] is at 11 and "
                                       "A[1, 2, 0] at 20");
  done(&lowered);
}

static void test_odd_lanes_in_pieces(void **state) {
  (void)state;
  Lowered lowered =
      lower_text("@T.prim_func\n"
                 "def f(A: T.Buffer((143,), \"float32\"), B: T.Buffer((143,), \"float32\")):\n"
                 "    for j in T.vectorized(143):\n"
                 "        with T.block(\"b\"):\n"
                 "            v = T.axis.spatial(143, j)\n"
                 "            B[v] = A[v] + T.float32(1)\n");
  assert_int_equal(counts_of(lowered.func->body).stores, 1 + 4); // 2 × 64, 8 + 4 + 2 + 1
  assert_int_equal(lowered.report.counts[LOWER_SCALARIZED], 0);
  done(&lowered);
}

static void test_divisions(void **state) {
  (void)state;
  Lowered lowered =
      lower_text("@T.prim_func\n"
                 "def f(A: T.Buffer((91,), \"int32\"), B: T.Buffer((91,), \"int32\")):\n"
                 "    for i in range(91):\n"
                 "        with T.block(\"b\"):\n"
                 "            v = T.axis.spatial(91, i)\n"
                 "            B[v] = A[v % 13 * 7 + v // 13] // 8 + A[v] % 16 + A[v] // 7\n");
  done(&lowered);
}

static bool find_let(Visitor *visitor, Stmt *s) {
  *(int *)visitor->env += s->kind == STMT_LET;
  return true;
}

static void test_addresses_are_hoisted(void **state) {
  (void)state;
  Lowered lowered = lower_text(
      "@T.prim_func\n"
      "def f(A: T.Buffer((3, 5, 7, 4), \"float32\"), B: T.Buffer((3, 5, 7, 4), \"float32\")):\n"
      "    for i, j, k in T.grid(3, 5, 7):\n"
      "        for u in T.unroll(4):\n"
      "            with T.block(\"b\"):\n"
      "                vi, vj, vk, vu = T.axis.remap(\"SSSS\", [i, j, k, u])\n"
      "                B[vi, vj, vk, vu] = T.Let(A[vi, vj, vk, x], where={x: 3 - vu})\n");
  int lets = 0;
  visit_stmt(&(Visitor){.env = &lets, .enter_stmt = find_let}, lowered.func->body);
  assert_int_equal(lets, 3); // one for each loop, shared by the eight accesses
  done(&lowered);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_table_is_in_order),
      cmocka_unit_test(test_orders_are_kept),
      cmocka_unit_test(test_passes_have_cases),
      cmocka_unit_test(test_graph_passes_have_cases),
      cmocka_unit_test(test_needs_are_reported),
      cmocka_unit_test(test_elementwise_with_a_tail),
      cmocka_unit_test(test_symbolic_size),
      cmocka_unit_test(test_softmax_with_inits),
      cmocka_unit_test(test_vectorized_reduction),
      cmocka_unit_test(test_convolution_has_no_conditions_left),
      cmocka_unit_test(test_regions_and_workspace),
      cmocka_unit_test(test_large_memory_of_a_task),
      cmocka_unit_test(test_a_value_carried_by_a_loop),
      cmocka_unit_test(test_views_and_aliases),
      cmocka_unit_test(test_alias_of_an_allocation),
      cmocka_unit_test(test_definition_that_stays_scalar),
      cmocka_unit_test(test_select_reads_both_sides),
      cmocka_unit_test(test_strided_and_offset_arguments),
      cmocka_unit_test(test_texture_keeps_two_axes),
      cmocka_unit_test(test_more_than_int32),
      cmocka_unit_test(test_parallel_inside_is_serial),
      cmocka_unit_test(test_padding_is_partitioned),
      cmocka_unit_test(test_parallel_tail_has_two_versions),
      cmocka_unit_test(test_lanes_that_gather),
      cmocka_unit_test(test_lanes_that_jump),
      cmocka_unit_test(test_odd_lanes_in_pieces),
      cmocka_unit_test(test_divisions),
      cmocka_unit_test(test_addresses_are_hoisted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
