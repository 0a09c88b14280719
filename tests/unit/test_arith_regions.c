// SPDX-License-Identifier: Apache-2.0
// Tests boxes of indices, regions of statements, bindings of blocks, and simplified statements.
#include "arith_support.h"

#define I(n) expr_index(c, (n))
#define ADD(a, b) expr_add(c, a, b)
#define TIMES(a, b) expr_mul(c, a, b)
#define OVER(a, b) expr_floor_div(c, a, b)
#define REST(a, b) expr_floor_mod(c, a, b)
#define LESS(a, b) expr_lt(c, a, b)

static void expect_same(World *w, Expr *got, Expr *wanted) {
  if (got != wanted) fail_msg("%s, not %s", spelled(w, got), spelled(w, wanted));
}

static void test_linear_form(void **state) {
  (void)state;
  World w = world_new();
  Context *c = w.context;
  Expr *i = world_var(&w, "i", 0, 3), *j = world_var(&w, "j", 0, 5), *n = world_var(&w, "n", 0, 1);
  Expr *vars[] = {i, j};
  int64_t coefs[2];
  Expr *base;
  Expr *e = ADD(TIMES(ADD(TIMES(i, I(7)), j), I(3)), OVER(n, I(2)));
  assert_true(linear_form(c, e, vars, 2, coefs, &base));
  assert_int_equal(coefs[0], 21);
  assert_int_equal(coefs[1], 3);
  expect_same(&w, base, OVER(n, I(2)));
  assert_false(linear_form(c, OVER(i, I(2)), vars, 2, coefs, &base));
  assert_false(linear_form(c, TIMES(i, n), vars, 2, coefs, &base));
  context_free(c);
}

static void test_window(void **state) {
  (void)state;
  World w = world_new();
  Context *c = w.context;
  Analyzer *a = analyzer_new(c);
  Expr *oho = world_var(&w, "oho", 0, 7), *ohi = world_var(&w, "ohi", 0, 4),
       *r = world_var(&w, "r", 0, 3), *s = world_var(&w, "s", 0, 9);
  Expr *stride = expr_var(c, "stride", DTYPE_INT32);
  VarRange vars[] = {{ohi, I(0), I(4)}, {r, I(0), I(3)}};
  Expr *oh = ADD(TIMES(oho, I(4)), ohi), *min, *extent;
  bool exact;
  Expr *index = expr_sub(c, ADD(TIMES(oh, I(2)), r), I(1));
  index_region(a, &index, 1, vars, 2, &min, &extent, &exact);
  expect_same(&w, min, expr_sub(c, TIMES(oho, I(8)), I(1)));
  expect_same(&w, extent, I(9));
  assert_true(exact);
  index = ADD(TIMES(oh, I(4)), r); // gaps
  index_region(a, &index, 1, vars, 2, &min, &extent, &exact);
  expect_same(&w, extent, I(15));
  assert_false(exact);
  index = OVER(ADD(oh, s), I(4));
  index_region(a, &index, 1, vars, 2, &min, &extent, &exact);
  expect_same(&w, min, analyzer_simplify(a, OVER(ADD(TIMES(oho, I(4)), s), I(4))));
  expect_same(&w, extent, I(2));
  index = OVER(oh, I(4));
  index_region(a, &index, 1, vars, 2, &min, &extent, &exact);
  expect_same(&w, min, oho);
  expect_same(&w, extent, I(1));
  analyzer_bind(a, stride, I(1), I(1000));
  index = ADD(TIMES(TIMES(oho, I(4)), stride), r);
  index_region(a, &index, 1, vars, 2, &min, &extent, &exact);
  expect_same(&w, min, TIMES(TIMES(oho, stride), I(4)));
  expect_same(&w, extent, I(3));
  context_free(c);
}

// Every value is in the box; an exact box has no other.
static void test_random_boxes(void **state) {
  (void)state;
  World w = world_new();
  Context *c = w.context;
  Analyzer *a = analyzer_new(c);
  world_var(&w, "i", 0, 6), world_var(&w, "j", 0, 4), world_var(&w, "k", 0, 5);
  analyzer_bind(a, w.vars[0], I(0), I(6));
  VarRange inner[] = {{w.vars[1], I(0), I(4)}, {w.vars[2], I(0), I(5)}};
  uint64_t seed = 99;
  int exact_count = 0;
  for (int n = 0; n < 6000; n++) {
    Expr *e = random_expr(&w, &seed, 3), *min, *extent;
    bool exact;
    index_region(a, &e, 1, inner, 2, &min, &extent, &exact);
    if (!min) continue;
    assert_false(expr_uses(min, w.vars[1]) || expr_uses(extent, w.vars[2]));
    for (w.value[0] = 0; w.value[0] < 6; w.value[0]++) {
      bool met[4096] = {false};
      int64_t met_count = 0, low = eval(&w, min), count = eval(&w, extent);
      for (int p = 0; p < 20; p++) {
        w.value[1] = p / 5;
        w.value[2] = p % 5;
        int64_t v = eval(&w, e);
        if (v < low || v >= low + count)
          fail_msg("%s is %lld outside [%lld, +%lld)", spelled(&w, e), (long long)v,
                   (long long)low, (long long)count);
        if (v - low >= 4096) continue;
        met_count += !met[v - low];
        met[v - low] = true;
      }
      if (exact && met_count != count)
        fail_msg("%s has %lld values, the box %lld", spelled(&w, e), (long long)met_count,
                 (long long)count);
    }
    exact_count += exact;
  }
  assert_true(exact_count > 1000);
  context_free(c);
}

static Block *block_of(Context *c, int count) {
  Block *block = arena_new(&c->arena, Block);
  block->name = str_intern(c, "B");
  block->var_count = count;
  block->vars = arena_array(&c->arena, BlockVar, count);
  block->predicate = expr_bool(c, true);
  return block;
}

static void set_var(Context *c, Block *block, int i, int64_t extent, Expr *binding) {
  block->vars[i] = (BlockVar){expr_var(c, str_format(c, "v%d", i), DTYPE_INT32), I(0), I(extent),
                              ITER_SPATIAL, binding};
}

static void test_bindings(void **state) {
  (void)state;
  World w = world_new();
  Context *c = w.context;
  Analyzer *a = analyzer_new(c);
  Expr *io = world_var(&w, "io", 0, 7), *ii = world_var(&w, "ii", 0, 16),
       *j = world_var(&w, "j", 0, 5);
  VarRange loops[] = {{io, I(0), I(7)}, {ii, I(0), I(16)}, {j, I(0), I(5)}};
  Expr *fused = ADD(TIMES(io, I(16)), ii);
  Block *b = block_of(c, 2);
  set_var(c, b, 0, 112, fused);
  set_var(c, b, 1, 5, j);
  assert_null(bindings_check(a, b, loops, 3));
  set_var(c, b, 0, 100, fused);
  assert_non_null(bindings_check(a, b, loops, 3));
  b->predicate = LESS(fused, I(100));
  assert_null(bindings_check(a, b, loops, 3));
  b->predicate = LESS(fused, I(99));
  assert_non_null(bindings_check(a, b, loops, 3));
  b->predicate = expr_bool(c, true);
  set_var(c, b, 0, 16, OVER(fused, I(7)));
  set_var(c, b, 1, 7, REST(fused, I(7)));
  assert_non_null(bindings_check(a, b, loops, 3)); // j repeats
  assert_null(bindings_check(a, b, loops, 2));
  b->predicate = LESS(fused, I(91));
  assert_non_null(bindings_check(a, b, loops, 2));
  b->vars[0].extent = I(13);
  assert_null(bindings_check(a, b, loops, 2));
  b->predicate = expr_bool(c, true);
  set_var(c, b, 0, 16, ii);
  set_var(c, b, 1, 7, io);
  assert_null(bindings_check(a, b, loops, 2));
  set_var(c, b, 1, 7, ADD(io, ii));
  assert_string_equal(bindings_check(a, b, loops, 2),
                      "the binding of v1 is not a fused or split loop");
  context_free(c);
}

static void test_symbolic_bindings(void **state) {
  (void)state;
  World w = world_new();
  Context *c = w.context;
  Analyzer *a = analyzer_new(c);
  Expr *n = expr_var(c, "n", DTYPE_INT32), *m = expr_var(c, "m", DTYPE_INT32);
  Expr *io = expr_var(c, "io", DTYPE_INT32), *ii = expr_var(c, "ii", DTYPE_INT32);
  analyzer_bind(a, n, I(1), I(1 << 20));
  analyzer_bind(a, m, I(1), I(1 << 20));
  VarRange loops[] = {{io, I(0), OVER(ADD(n, I(15)), I(16))}, {ii, I(0), I(16)}};
  Expr *fused = ADD(TIMES(io, I(16)), ii);
  Block *b = block_of(c, 1);
  set_var(c, b, 0, 1, fused);
  b->vars[0].extent = n;
  assert_non_null(bindings_check(a, b, loops, 2));
  b->predicate = LESS(fused, n);
  assert_null(bindings_check(a, b, loops, 2));
  b->predicate = LESS(fused, expr_sub(c, n, I(1)));
  assert_non_null(bindings_check(a, b, loops, 2));
  b->predicate = LESS(fused, m);
  assert_non_null(bindings_check(a, b, loops, 2));
  VarRange both[] = {{io, I(0), n}, {ii, I(0), m}};
  b->predicate = expr_bool(c, true);
  b->vars[0].extent = TIMES(n, m);
  b->vars[0].binding = ADD(TIMES(io, m), ii);
  assert_null(bindings_check(a, b, both, 2));
  b->vars[0].binding = ADD(TIMES(io, n), ii);
  assert_non_null(bindings_check(a, b, both, 2));
  context_free(c);
}

// Random split, fused, permuted and spoiled maps against enumeration in the test.
static void test_random_bindings(void **state) {
  (void)state;
  uint64_t seed = 5;
  int good = 0;
  for (int round = 0; round < 3000; round++) {
    World w = world_new();
    Context *c = w.context;
    Analyzer *a = analyzer_new(c);
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 6, 8};
    VarRange loops[3];
    Block *b = block_of(c, 2);
    int64_t total = 1;
    for (int i = 0; i < 3; i++) {
      int64_t size = sizes[pick(&seed, 7)];
      Expr *v = world_var(&w, str_format(c, "l%d", i), 0, size);
      loops[i] = (VarRange){v, I(0), I(size)};
      total *= size;
    }
    Expr *fused = w.vars[0];
    for (int i = 1; i < 3; i++) fused = ADD(TIMES(fused, I(w.extent[i])), w.vars[i]);
    int64_t cut = (int64_t[]){2, 3, 4, 6}[pick(&seed, 4)];
    if (pick(&seed, 2)) b->predicate = LESS(fused, I(1 + pick(&seed, (uint32_t)total)));
    int64_t outer = (total + cut - 1) / cut - (pick(&seed, 4) == 0);
    set_var(c, b, 0, outer, OVER(fused, I(cut)));
    set_var(c, b, 1, cut, REST(fused, I(cut)));
    if (pick(&seed, 5) == 0) b->vars[1].binding = REST(w.vars[pick(&seed, 3)], I(cut));
    bool met[2000] = {false}, right = true;
    int64_t count = 0, value;
    world_first(&w);
    do {
      if (!eval(&w, b->predicate)) continue;
      int64_t v = eval(&w, b->vars[0].binding), u = eval(&w, b->vars[1].binding);
      right &= v >= 0 && v < outer && u >= 0 && u < cut && !met[v * cut + u];
      if (right) met[v * cut + u] = true;
      count++;
    } while (world_next(&w));
    right &= count == outer * cut;
    const char *answer = bindings_check(a, b, loops, 3);
    assert_int_equal(answer == NULL, right);
    assert_true(expr_value(fused, w.vars, w.value, 3, &value) && value == eval(&w, fused));
    good += right;
    context_free(c);
  }
  assert_true(good > 100);
}

static Buffer *buffer_1d(Context *c, const char *name, int64_t extent) {
  return buffer_static(c, name, DTYPE_FLOAT32, &extent, 1, NULL);
}

static void test_regions_of_statements(void **state) {
  (void)state;
  World w = world_new();
  Context *c = w.context;
  Analyzer *a = analyzer_new(c);
  Expr *i = world_var(&w, "i", 0, 7), *j = world_var(&w, "j", 0, 4), *k = world_var(&w, "k", 0, 3);
  Buffer *x = buffer_1d(c, "X", 40), *y = buffer_1d(c, "Y", 28);
  Expr *at = ADD(TIMES(i, I(4)), j), *window = ADD(at, k);
  Expr *value = expr_add(c, expr_load(c, y, &at, 1), expr_load(c, x, &window, 1));
  Stmt *s = stmt_store(c, y, &at, 1, value);
  s = stmt_for(c, j, I(0), I(4), LOOP_SERIAL, stmt_for(c, k, I(0), I(3), LOOP_SERIAL, s));
  RegionArray reads = {0}, writes = {0};
  stmt_regions(a, s, &reads, &writes);
  assert_int_equal(reads.count, 2);
  assert_ptr_equal(reads.items[0].buffer, y);
  expect_same(&w, reads.items[1].min[0], TIMES(i, I(4)));
  expect_same(&w, reads.items[1].extent[0], I(6));
  expect_same(&w, writes.items[0].extent[0], I(4));
  Region all = {x, (Expr *[]){I(0)}, (Expr *[]){I(40)}};
  analyzer_bind(a, i, I(0), I(7));
  assert_true(region_covers(a, &all, &reads.items[1]));
  analyzer_bind(a, i, I(0), I(10));
  assert_false(region_covers(a, &all, &reads.items[1]));
  context_free(c);
}

static void test_statements_become_small(void **state) {
  (void)state;
  World w = world_new();
  Context *c = w.context;
  Expr *io = world_var(&w, "io", 0, 7), *ii = world_var(&w, "ii", 0, 16),
       *k = world_var(&w, "k", 0, 1);
  Buffer *x = buffer_1d(c, "X", 7), *y = buffer_1d(c, "Y", 100);
  Expr *fused = ADD(TIMES(io, I(16)), ii);
  Expr *from = OVER(fused, I(16)), *to = ADD(fused, k);
  Stmt *store = stmt_store(c, y, &to, 1, expr_load(c, x, &from, 1));
  Stmt *s = stmt_if(c, LESS(I(-1), io), store, NULL);
  s = stmt_for(c, k, I(0), I(1), LOOP_SERIAL, stmt_if(c, LESS(fused, I(100)), s, NULL));
  s = stmt_for(c, io, I(0), I(7), LOOP_SERIAL, stmt_for(c, ii, I(0), I(16), LOOP_PARALLEL, s));
  Stmt *r = arith_simplify_stmt(c, s);
  Stmt *branch = r->as.loop.body->as.loop.body;
  assert_int_equal(branch->kind, STMT_IF);
  expect_same(&w, branch->as.branch.condition, LESS(fused, I(100)));
  Stmt *inner = branch->as.branch.then_body;
  assert_int_equal(inner->kind, STMT_STORE);
  expect_same(&w, inner->as.store.indices[0], fused);
  expect_same(&w, inner->as.store.value->args[0], io);
  assert_ptr_equal(arith_simplify_stmt(c, r), r);
  Stmt *never = stmt_if(c, LESS(fused, I(0)), store, NULL);
  never =
      stmt_for(c, io, I(0), I(7), LOOP_SERIAL, stmt_for(c, ii, I(0), I(16), LOOP_SERIAL, never));
  assert_true(stmt_is_nothing(arith_simplify_stmt(c, never)));
  context_free(c);
}

// A value read from memory may change in the body, so a condition on it is not assumed there.
static void test_memory_is_no_fact(void **state) {
  (void)state;
  World w = world_new();
  Context *c = w.context;
  Buffer *f = buffer_static(c, "F", DTYPE_INT32, (int64_t[]){1}, 1, NULL);
  Expr *zero = I(0), *load = expr_load(c, f, &zero, 1);
  Stmt *again = stmt_if(c, LESS(I(0), load), stmt_store(c, f, &zero, 1, I(7)), NULL);
  Stmt *both[] = {stmt_store(c, f, &zero, 1, I(0)), again};
  Stmt *s = stmt_if(c, LESS(I(0), load), stmt_seq(c, both, 2), NULL);
  Stmt *r = arith_simplify_stmt(c, s);
  assert_int_equal(r->as.branch.then_body->as.seq.items[1]->kind, STMT_IF);
  context_free(c);
}

static void test_blocks_get_regions(void **state) {
  (void)state;
  World w = world_new();
  Context *c = w.context;
  Expr *i = world_var(&w, "i", 0, 5), *k = world_var(&w, "k", 0, 3);
  Buffer *x = buffer_1d(c, "X", 15), *y = buffer_1d(c, "Y", 5);
  Block *b = block_of(c, 2);
  set_var(c, b, 0, 5, i);
  set_var(c, b, 1, 3, k);
  b->vars[1].kind = ITER_REDUCTION;
  Expr *vi = b->vars[0].var, *at = ADD(TIMES(vi, I(3)), b->vars[1].var);
  b->body = stmt_store(c, y, &vi, 1, expr_add(c, expr_load(c, y, &vi, 1), expr_load(c, x, &at, 1)));
  b->init = stmt_store(c, y, &vi, 1, expr_float(c, DTYPE_FLOAT32, 0));
  Stmt *s = stmt_for(c, i, I(0), I(5), LOOP_SERIAL,
                     stmt_for(c, k, I(0), I(3), LOOP_SERIAL, stmt_block(c, b)));
  Block *r = blocks_find_regions(c, s)->as.loop.body->as.loop.body->as.block;
  assert_int_equal(r->read_count, 1);
  assert_int_equal(r->write_count, 1);
  assert_ptr_equal(r->reads[0].buffer, x);
  expect_same(&w, r->reads[0].min[0], at);
  expect_same(&w, r->writes[0].min[0], vi);
  context_free(c);
}

static void test_vectors(void **state) {
  (void)state;
  World w = world_new();
  Context *c = w.context;
  Analyzer *a = analyzer_new(c);
  Expr *i = world_var(&w, "i", 0, 9), *j = world_var(&w, "j", 0, 9);
  world_bind(&w, a);
  Expr *eight = expr_broadcast(c, I(8), 8);
  Expr *aligned = expr_ramp(c, TIMES(i, I(8)), I(1), 8), *loose = expr_ramp(c, i, I(1), 8);
  expect_same(&w, analyzer_simplify(a, OVER(aligned, eight)), expr_broadcast(c, i, 8));
  expect_same(&w, analyzer_simplify(a, REST(aligned, eight)), expr_ramp(c, I(0), I(1), 8));
  expect_same(&w, analyzer_simplify(a, REST(loose, eight)), REST(loose, eight));
  Expr *sum = ADD(aligned, expr_ramp(c, j, I(3), 8));
  expect_same(&w, analyzer_simplify(a, sum), expr_ramp(c, ADD(TIMES(i, I(8)), j), I(4), 8));
  Expr *end = expr_broadcast(c, I(16), 8);
  expect_same(&w, analyzer_simplify(a, LESS(loose, end)),
              expr_int(c, dtype_lanes(DTYPE_BOOL, 8), 1));
  expect_same(&w, analyzer_simplify(a, LESS(aligned, end)), LESS(aligned, end));
  expect_same(&w, analyzer_simplify(a, expr_min(c, loose, end)), loose);
  Expr *apart = expr_broadcast(c, TIMES(j, I(8)), 8), *near = expr_broadcast(c, TIMES(j, I(4)), 8);
  Expr *moved = expr_ramp(
      c, analyzer_simplify(a, expr_binary(c, EXPR_BIT_XOR, TIMES(i, I(8)), TIMES(j, I(8)))), I(1),
      8);
  expect_same(&w, analyzer_simplify(a, expr_binary(c, EXPR_BIT_XOR, aligned, apart)), moved);
  assert_true(modular_is_multiple(a, moved->args[0], 8));
  assert_false(modular_is_multiple(a, moved->args[0], 16));
  Expr *kept = expr_binary(c, EXPR_BIT_XOR, aligned, near);
  expect_same(&w, analyzer_simplify(a, kept), kept);
  uint64_t seed = 3;
  for (int n = 0; n < 2000; n++) {
    Expr *first = random_expr(&w, &seed, 2), *x;
    if (pick(&seed, 2)) first = TIMES(first, I(8));
    x = expr_ramp(c, first, I((int64_t)pick(&seed, 7) - 3), 4);
    Expr *y = pick(&seed, 2) ? expr_broadcast(c, I(1 + pick(&seed, 12)), 4)
                             : expr_ramp(c, random_expr(&w, &seed, 1), I(2), 4);
    static const ExprOp ops[] = {EXPR_ADD, EXPR_SUB, EXPR_MUL, EXPR_FLOOR_DIV, EXPR_FLOOR_MOD,
                                 EXPR_MIN, EXPR_MAX, EXPR_LT,  EXPR_LE,        EXPR_GT,
                                 EXPR_GE,  EXPR_EQ,  EXPR_NE,  EXPR_BIT_XOR,   EXPR_BIT_OR};
    Expr *e = expr_binary(c, ops[pick(&seed, COUNT_OF(ops))], x, y), *s = analyzer_simplify(a, e);
    world_first(&w);
    do {
      for (w.lane = 0; w.lane < 4; w.lane++) {
        w.undefined = false;
        int64_t wanted = eval(&w, e);
        if (!w.undefined) assert_int_equal(eval(&w, s), wanted);
      }
    } while (world_next(&w));
  }
  context_free(c);
}

// Bits above those of the other operand are a sum with the rest.
static void test_split_bits(void **state) {
  (void)state;
  World w = world_new();
  Context *c = w.context;
  Analyzer *a = analyzer_new(c);
  Expr *i = world_var(&w, "i", -3, 4), *j = world_var(&w, "j", 0, 9);
  world_bind(&w, a);
  Expr *sum = ADD(TIMES(i, I(16)), j);
  expect_same(&w, analyzer_simplify(a, expr_binary(c, EXPR_BIT_XOR, sum, I(5))),
              ADD(TIMES(i, I(16)), expr_binary(c, EXPR_BIT_XOR, j, I(5))));
  uint64_t seed = 5;
  for (int n = 0; n < 300; n++) {
    Expr *x = ADD(TIMES(i, I(1 << pick(&seed, 6))), ADD(j, I((int64_t)pick(&seed, 40) - 20)));
    Expr *y = pick(&seed, 2) ? TIMES(j, I(1 + pick(&seed, 3))) : I((int64_t)pick(&seed, 20) - 4);
    ExprOp op = pick(&seed, 2) ? EXPR_BIT_XOR : EXPR_BIT_OR;
    Expr *e = pick(&seed, 2) ? expr_binary(c, op, x, y) : expr_binary(c, op, y, x);
    Expr *s = analyzer_simplify(a, e);
    world_first(&w);
    do assert_int_equal(eval(&w, s), eval(&w, e));
    while (world_next(&w));
  }
  context_free(c);
}

// NCHW4c and back over expressions; random maps keep their values through both conversions.
static void test_index_maps(void **state) {
  (void)state;
  World w = world_new();
  Context *c = w.context;
  Analyzer *a = analyzer_new(c);
  Expr *co = world_var(&w, "co", 0, 5), *ci = world_var(&w, "ci", 0, 4),
       *h = world_var(&w, "h", 0, 7);
  world_bind(&w, a);
  LayoutSource source = layout_source("c, h -> c//4, h, c%4", 2);
  const IndexMap *map = index_map_parse(c, &source);
  Expr *in[] = {ADD(TIMES(co, I(4)), ci), h}, *out[3], *back[2], *holds;
  assert_true(index_map_apply_exprs(c, map, in, NULL, out));
  for (int i = 0; i < COUNT_OF(out); i++) out[i] = analyzer_simplify(a, out[i]);
  expect_same(&w, out[0], co);
  expect_same(&w, out[1], h);
  expect_same(&w, out[2], ci);
  const Layout *layout = layout_static(c, map, (int64_t[]){18, 7}, (SourcePos){0});
  assert_true(layout_inverse_exprs(c, layout, out, NULL, back, &holds, NULL));
  expect_same(&w, analyzer_simplify(a, back[0]), in[0]);
  expect_same(&w, analyzer_simplify(a, holds), analyzer_simplify(a, LESS(in[0], I(18))));
  uint64_t seed = 11;
  int converted = 0;
  for (int n = 0; n < 500; n++) {
    Expr *e[] = {random_expr(&w, &seed, 3), random_condition(&w, &seed, 3)}, *again[2];
    const IndexMap *made = index_map_from_exprs(c, w.vars, 3, e, 2, false);
    if (!made || !index_map_apply_exprs(c, made, w.vars, NULL, again)) continue;
    converted++;
    world_first(&w);
    do {
      w.undefined = false;
      int64_t x = eval(&w, e[0]), y = eval(&w, e[1]);
      if (w.undefined) continue;
      assert_int_equal(eval(&w, again[0]), x);
      assert_int_equal(eval(&w, again[1]), y);
    } while (world_next(&w));
  }
  assert_true(converted > 400);
  Expr *load = expr_load(c, buffer_static(c, "B", DTYPE_INT32, (int64_t[]){3}, 1, NULL), &h, 1);
  assert_null(layout_from_expr(c, load, w.vars, 3, true));
  Expr *n = expr_var(c, "n", DTYPE_INT32);
  assert_null(layout_from_expr(c, ADD(n, h), w.vars, 3, false));
  assert_non_null(layout_from_expr(c, ADD(n, h), w.vars, 3, true));
  context_free(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_linear_form),
      cmocka_unit_test(test_window),
      cmocka_unit_test(test_random_boxes),
      cmocka_unit_test(test_bindings),
      cmocka_unit_test(test_symbolic_bindings),
      cmocka_unit_test(test_random_bindings),
      cmocka_unit_test(test_regions_of_statements),
      cmocka_unit_test(test_statements_become_small),
      cmocka_unit_test(test_memory_is_no_fact),
      cmocka_unit_test(test_blocks_get_regions),
      cmocka_unit_test(test_vectors),
      cmocka_unit_test(test_split_bits),
      cmocka_unit_test(test_index_maps),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
