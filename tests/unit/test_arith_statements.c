// SPDX-License-Identifier: Apache-2.0
// Random statements: a simplified one must leave the same memory, and every access must be inside
// the regions found.
#include "arith_support.h"

enum { SIZE = 64, MOST_LOOPS = 4 };

#ifndef STATEMENT_ROUNDS
#define STATEMENT_ROUNDS 1500
#endif

// The memory of one integer buffer, and the elements that were accessed.
typedef struct Machine {
  Context *context;
  Buffer *buffer;
  Map values; // variables to their value
  int64_t memory[SIZE], steps;
  int64_t read_low, read_high, write_low, write_high;
} Machine;

static int64_t machine_eval(Machine *m, const Expr *e) {
  if (e->op == EXPR_INT) return e->as.i;
  if (e->op == EXPR_VAR) return (intptr_t)map_find(&m->values, e);
  if (e->op == EXPR_LOAD) {
    int64_t i = machine_eval(m, e->args[0]);
    m->read_low = MIN_OF(m->read_low, i);
    m->read_high = MAX_OF(m->read_high, i);
    return m->memory[floor_mod(i, SIZE)];
  }
  if (e->op == EXPR_SELECT || e->op == EXPR_IF_THEN_ELSE)
    return machine_eval(m, e->args[machine_eval(m, e->args[0]) ? 1 : 2]);
  if (e->op == EXPR_AND) return machine_eval(m, e->args[0]) && machine_eval(m, e->args[1]);
  if (e->op == EXPR_OR) return machine_eval(m, e->args[0]) || machine_eval(m, e->args[1]);
  World w = {.context = m->context};
  Expr *local[3];
  char space[sizeof(Expr) + 3 * sizeof(Expr *)];
  Expr *node = (Expr *)space;
  *node = *e;
  for (int i = 0; i < e->count; i++) {
    local[i] = expr_int(m->context, DTYPE_INT64, machine_eval(m, e->args[i]));
    node->args[i] = local[i];
  }
  return eval(&w, node);
}

static void machine_run(Machine *m, Stmt *s);

static void run_loop(Machine *m, Stmt *s) {
  int64_t min = machine_eval(m, s->as.loop.min), extent = machine_eval(m, s->as.loop.extent);
  for (int64_t i = min; i < min + extent; i++) {
    map_put(&m->values, s->as.loop.var, (intptr_t)i);
    machine_run(m, s->as.loop.body);
  }
}

static void run_block(Machine *m, Stmt *s) {
  const Block *block = s->as.block;
  if (!machine_eval(m, block->predicate)) return;
  for (int i = 0; i < block->var_count; i++)
    map_put(&m->values, block->vars[i].var, (intptr_t)machine_eval(m, block->vars[i].binding));
  machine_run(m, block->body);
}

static void run_store(Machine *m, Stmt *s) {
  int64_t i = machine_eval(m, s->as.store.indices[0]);
  m->write_low = MIN_OF(m->write_low, i);
  m->write_high = MAX_OF(m->write_high, i);
  m->memory[floor_mod(i, SIZE)] = machine_eval(m, s->as.store.value) % 1000;
  m->steps++;
}

static void machine_run(Machine *m, Stmt *s) {
  switch (s->kind) {
  case STMT_FOR: run_loop(m, s); break;
  case STMT_BLOCK: run_block(m, s); break;
  case STMT_STORE: run_store(m, s); break;
  case STMT_LET:
    map_put(&m->values, s->as.let.var, (intptr_t)machine_eval(m, s->as.let.value));
    machine_run(m, s->as.let.body);
    break;
  case STMT_IF:
    if (machine_eval(m, s->as.branch.condition))
      machine_run(m, s->as.branch.then_body);
    else if (s->as.branch.else_body)
      machine_run(m, s->as.branch.else_body);
    break;
  case STMT_SEQ:
    for (int i = 0; i < s->as.seq.count; i++) machine_run(m, s->as.seq.items[i]);
    break;
  default: fail_msg("statement %d", s->kind);
  }
}

static Machine machine_new(Context *c, Buffer *buffer) {
  Machine m = {.context = c,
               .buffer = buffer,
               .values = map_new(&c->arena),
               .read_low = INT64_MAX,
               .read_high = INT64_MIN,
               .write_low = INT64_MAX,
               .write_high = INT64_MIN};
  for (int i = 0; i < SIZE; i++) m.memory[i] = i * 7 % 11 - 3;
  return m;
}

// ---- Random statements over the variables bound so far

typedef struct Maker {
  World w; // the variables in scope
  Buffer *buffer;
  uint64_t seed;
} Maker;

static Expr *make_value(Maker *maker) {
  Context *c = maker->w.context;
  Expr *e = random_expr(&maker->w, &maker->seed, 2);
  if (pick(&maker->seed, 3)) return e;
  Expr *at = random_expr(&maker->w, &maker->seed, 2);
  return expr_add(c, expr_load(c, maker->buffer, &at, 1), e);
}

static Expr *make_condition(Maker *maker) {
  Context *c = maker->w.context;
  Expr *e = random_condition(&maker->w, &maker->seed, 2);
  if (pick(&maker->seed, 4)) return e;
  Expr *at = random_expr(&maker->w, &maker->seed, 1);
  return expr_and(c, e, expr_lt(c, expr_index(c, 0), expr_load(c, maker->buffer, &at, 1)));
}

static Stmt *make_stmt(Maker *maker, int depth);

static Stmt *make_store(Maker *maker) {
  Expr *at = random_expr(&maker->w, &maker->seed, 2);
  return stmt_store(maker->w.context, maker->buffer, &at, 1, make_value(maker));
}

static Stmt *make_loop(Maker *maker, int depth) {
  World *w = &maker->w;
  Context *c = w->context;
  Expr *extent = expr_index(c, (int64_t[]){1, 2, 3, 5, 7}[pick(&maker->seed, 5)]);
  if (pick(&maker->seed, 4) == 0)
    extent = expr_min(c, extent, w->vars[pick(&maker->seed, (uint32_t)w->count)]);
  Expr *min = expr_index(c, pick(&maker->seed, 3) ? 0 : (int64_t)pick(&maker->seed, 5) - 2);
  Expr *var = world_var(w, str_format(c, "l%d", w->count), 0, 1);
  Stmt *body = make_stmt(maker, depth - 1);
  w->count--;
  return stmt_for(c, var, min, extent, LOOP_SERIAL, body);
}

static Stmt *make_let(Maker *maker, int depth) {
  World *w = &maker->w;
  Expr *value = make_value(maker);
  Expr *var = world_var(w, str_format(w->context, "t%d", w->count), 0, 1);
  Stmt *body = make_stmt(maker, depth - 1);
  w->count--;
  return stmt_let(w->context, var, value, body);
}

static Stmt *make_block(Maker *maker, int depth) {
  World *w = &maker->w;
  Context *c = w->context;
  Block *block = arena_new(&c->arena, Block);
  Expr *binding = w->vars[pick(&maker->seed, (uint32_t)w->count)];
  int64_t radix = 2 + pick(&maker->seed, 4);
  block->name = str_intern(c, "B");
  block->var_count = 1;
  block->vars = arena_new(&c->arena, BlockVar);
  block->predicate = make_condition(maker);
  block->vars[0] = (BlockVar){world_var(w, str_format(c, "v%d", w->count), 0, 1), expr_index(c, 0),
                              expr_index(c, radix), ITER_SPATIAL,
                              expr_floor_mod(c, binding, expr_index(c, radix))};
  block->body = make_stmt(maker, depth - 1);
  w->count--;
  return stmt_block(c, block);
}

static Stmt *make_stmt(Maker *maker, int depth) {
  Context *c = maker->w.context;
  if (depth <= 0 || maker->w.count >= MOST_VARS - 1) return make_store(maker);
  switch (pick(&maker->seed, 8)) {
  case 0:
  case 1: return make_loop(maker, depth);
  case 2:
  case 3: {
    Stmt *otherwise = pick(&maker->seed, 2) ? make_stmt(maker, depth - 1) : NULL;
    return stmt_if(c, make_condition(maker), make_stmt(maker, depth - 1), otherwise);
  }
  case 4: return make_let(maker, depth);
  case 5: return make_block(maker, depth);
  default: {
    Stmt *items[] = {make_stmt(maker, depth - 1), make_stmt(maker, depth - 1)};
    return stmt_seq(c, items, 2);
  }
  }
}

static Maker maker_new(uint64_t seed) {
  Maker maker = {.w = world_new(), .seed = seed};
  int64_t size = SIZE;
  maker.buffer = buffer_static(maker.w.context, "A", DTYPE_INT32, &size, 1, NULL);
  world_var(&maker.w, "i", 0, 5);
  world_var(&maker.w, "j", 0, 3);
  return maker;
}

// Binds i and j to surrounding loops.
static Stmt *with_loops(Maker *maker, Stmt *s) {
  Context *c = maker->w.context;
  for (int i = 1; i >= 0; i--)
    s = stmt_for(c, maker->w.vars[i], expr_index(c, 0), expr_index(c, maker->w.extent[i]),
                 LOOP_SERIAL, s);
  return s;
}

static void test_simplified_statements_do_the_same(void **state) {
  (void)state;
  int changed = 0;
  for (int n = 0; n < STATEMENT_ROUNDS; n++) {
    Maker maker = maker_new((uint64_t)n * 77777 + 5);
    Context *c = maker.w.context;
    Stmt *s = with_loops(&maker, make_stmt(&maker, 4)), *r = arith_simplify_stmt(c, s);
    Machine before = machine_new(c, maker.buffer), after = machine_new(c, maker.buffer);
    machine_run(&before, s);
    machine_run(&after, r);
    if (memcmp(before.memory, after.memory, sizeof before.memory) || after.steps > before.steps)
      fail_msg("round %d: other memory after simplification", n);
    changed += r != s;
    context_free(c);
  }
  assert_true(changed > STATEMENT_ROUNDS / 2);
}

static bool inside(Machine *m, const RegionArray *regions, int64_t low, int64_t high) {
  if (low > high) return true;
  if (regions->count != 1) return false;
  int64_t min = machine_eval(m, regions->items[0].min[0]);
  int64_t extent = machine_eval(m, regions->items[0].extent[0]);
  return min <= low && high < min + extent;
}

typedef struct FreeCheck {
  World *w;
  bool other;
} FreeCheck;

static bool other_var(Visitor *visitor, Expr *e) {
  FreeCheck *check = visitor->env;
  if (e->op == EXPR_VAR) check->other |= e != check->w->vars[0] && e != check->w->vars[1];
  return true;
}

// Checks that the regions depend on i and j only.
static void check_free(World *w, const RegionArray *regions) {
  FreeCheck check = {w, false};
  Visitor visitor = {.env = &check, .enter_expr = other_var};
  for (int i = 0; i < regions->count; i++) {
    visit_expr(&visitor, regions->items[i].min[0]);
    visit_expr(&visitor, regions->items[i].extent[0]);
  }
  assert_false(check.other);
}

// Checks the regions for each value of the free i and j. The region of a loaded index is the whole
// buffer, so these statements have no loaded indices.
static void test_accesses_lie_in_regions(void **state) {
  (void)state;
  for (int n = 0; n < STATEMENT_ROUNDS; n++) {
    Maker maker = maker_new((uint64_t)n * 99991 + 17);
    World *w = &maker.w;
    Context *c = w->context;
    Stmt *s = make_stmt(&maker, 4);
    Analyzer *a = analyzer_new(c);
    world_bind(w, a);
    RegionArray reads = {0}, writes = {0};
    stmt_regions(a, s, &reads, &writes);
    check_free(w, &reads);
    check_free(w, &writes);
    for (int64_t i = 0; i < w->extent[0]; i++)
      for (int64_t j = 0; j < w->extent[1]; j++) {
        Machine m = machine_new(c, maker.buffer);
        map_put(&m.values, w->vars[0], (intptr_t)i);
        map_put(&m.values, w->vars[1], (intptr_t)j);
        machine_run(&m, s);
        m.read_low = MAX_OF(m.read_low, 0), m.read_high = MIN_OF(m.read_high, SIZE - 1);
        m.write_low = MAX_OF(m.write_low, 0), m.write_high = MIN_OF(m.write_high, SIZE - 1);
        if (!inside(&m, &reads, m.read_low, m.read_high) ||
            !inside(&m, &writes, m.write_low, m.write_high))
          fail_msg("round %d: an access outside its region, i %d j %d", n, (int)i, (int)j);
      }
    context_free(c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_simplified_statements_do_the_same),
      cmocka_unit_test(test_accesses_lie_in_regions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
