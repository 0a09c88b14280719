// SPDX-License-Identifier: Apache-2.0
// Looks for two iterations of a parallel or vectorised loop that access one element, which at least
// one of them writes. Some iterations of each loop are followed with their numbers; accesses whose
// indices or conditions are data are left out, so that what is found is a fault.
//
//   for i in T.parallel(8):        iterations i = 0 and i = 1 of the parallel loop:
//     C[i // 2] = A[i]               both write C[0]
#include "lower/pass.h"
#include "script/script.h"

enum { MOST_STEPS = 1 << 13, MOST_VARS = 64, FIRST_ITERATIONS = 6 };

typedef struct Touch {
  int64_t iteration;
  bool writes;
  const Stmt *by;
  Expr *value; // that is written, at the numbers of the iteration
} Touch;

typedef struct Following {
  Context *context;
  Stmt *loop; // the loop whose iterations are compared
  int64_t iteration;
  Map touched; // Buffer* → Map* from the element's number + 1 to Touch*
  Map inside;  // data variables of allocations inside of the loop
  Expr *vars[MOST_VARS];
  int64_t values[MOST_VARS];
  int count, steps;
  SourcePos pos;
  bool found;
} Following;

static bool value_of(const Following *f, const Expr *e, int64_t *value) {
  return expr_value(e, f->vars, f->values, f->count, value);
}

static bool bind(Following *f, Expr *var, int64_t value) {
  if (f->count == MOST_VARS) return false;
  f->vars[f->count] = var;
  f->values[f->count++] = value;
  return true;
}

// ---- Accesses

static bool element_number(const Following *f, const Buffer *buffer, Expr *const *indices,
                           int64_t *number) {
  *number = 0;
  for (int d = 0; d < buffer->rank; d++) {
    int64_t index, extent;
    if (!value_of(f, indices[d], &index) || !value_of(f, buffer->shape[d], &extent) ||
        !mul_fits(*number, extent, number))
      return false;
    *number += index;
  }
  return true;
}

static const char *element_text(const Following *f, const Buffer *buffer, Expr *const *indices) {
  Text text = text_new(&f->context->arena);
  text_printf(&text, "%s[", buffer->name);
  for (int d = 0; d < buffer->rank; d++) {
    int64_t index = 0;
    value_of(f, indices[d], &index);
    text_printf(&text, "%s%lld", d ? ", " : "", (long long)index);
  }
  text_puts(&text, "]");
  return text_string(&text);
}

static void report(Following *f, const Touch *first, bool writes, const char *element) {
  const char *name = f->loop->as.loop.var->as.var->name;
  const char *kind = f->loop->as.loop.kind == LOOP_PARALLEL ? "parallel" : "vectorized";
  const char *what = first->writes && writes ? "both write"
                     : writes                ? "the second writes and the first reads"
                                             : "the first writes and the second reads";
  f->found = true;
  diag_error(f->context, f->pos, "iterations %s = %lld and %s = %lld of a %s loop share %s: %s it",
             name, (long long)first->iteration, name, (long long)f->iteration, kind, element, what);
}

// The lanes of a vector may add up to one element, in one store.
static bool is_sum_of_lanes(const Following *f, const Touch *first, const Stmt *by) {
  if (f->loop->as.loop.kind != LOOP_VECTORIZED || first->by != by) return false;
  const Expr *value = by->as.store.value;
  for (int i = 0; i < value->count; i++)
    if (lower_loads_stored(value->args[i], by)) return true;
  return false;
}

// The written value with the numbers of the iteration: where it is the same, so is the element.
static Expr *value_written(const Following *f, const Stmt *by) {
  Context *context = f->context;
  Map numbers = map_new(&context->arena);
  for (int i = 0; i < f->count; i++)
    map_put(&numbers, f->vars[i], expr_int(context, f->vars[i]->type, f->values[i]));
  return substitute_expr(context, by->as.store.value, &numbers);
}

static bool is_fault(const Following *f, const Touch *first, bool writes, const Stmt *by) {
  if (first->iteration == f->iteration || !(first->writes || writes)) return false;
  if (is_sum_of_lanes(f, first, by)) return false;
  bool both = first->writes && writes && first->by == by;
  return !both || first->value != value_written(f, by);
}

static void touch(Following *f, Buffer *buffer, Expr *const *indices, bool writes, const Stmt *by) {
  int64_t number;
  if (f->found || map_contains(&f->inside, buffer->data) ||
      !element_number(f, buffer, indices, &number))
    return;
  Arena *arena = &f->context->arena;
  Map *elements = map_find(&f->touched, buffer);
  if (!elements) {
    elements = arena_new(arena, Map);
    *elements = map_new(arena);
    map_put(&f->touched, buffer, elements);
  }
  Touch *first = map_find(elements, (uintptr_t)number + 1);
  if (!first) {
    first = arena_new(arena, Touch);
    *first = (Touch){f->iteration, writes, by, writes ? value_written(f, by) : NULL};
    map_put(elements, (uintptr_t)number + 1, first);
  } else if (is_fault(f, first, writes, by)) {
    report(f, first, writes, element_text(f, buffer, indices));
  } else if (first->iteration == f->iteration && writes) {
    *first = (Touch){f->iteration, true, by, value_written(f, by)};
  }
}

static void follow_expr(Following *f, Expr *e, const Stmt *by) {
  if (f->found || !e->count) return;
  bool shortcut = e->op == EXPR_IF_THEN_ELSE || e->op == EXPR_AND || e->op == EXPR_OR;
  if (!shortcut) {
    for (int i = 0; i < e->count; i++) follow_expr(f, e->args[i], by);
    if (e->op == EXPR_LOAD) touch(f, e->as.buffer, e->args, false, by);
    return;
  }
  int64_t holds;
  follow_expr(f, e->args[0], by);
  if (!value_of(f, e->args[0], &holds)) return;
  if (e->op == EXPR_IF_THEN_ELSE)
    follow_expr(f, e->args[holds ? 1 : 2], by);
  else if ((e->op == EXPR_AND) == (holds != 0))
    follow_expr(f, e->args[1], by);
}

// ---- Statements

static void follow(Following *f, Stmt *s);

static bool loop_range_of(const Following *f, const Stmt *s, int64_t *min, int64_t *extent) {
  return value_of(f, s->as.loop.min, min) && value_of(f, s->as.loop.extent, extent);
}

// The first iterations and the last one.
static int64_t iteration_at(int64_t extent, int64_t number) {
  return number < FIRST_ITERATIONS || extent <= FIRST_ITERATIONS ? number : extent - 1;
}

static void follow_loop(Following *f, Stmt *s) {
  int64_t min, extent;
  if (!loop_range_of(f, s, &min, &extent)) return;
  for (int64_t k = 0; k < MIN_OF(extent, FIRST_ITERATIONS + 1) && !f->found; k++) {
    int count = f->count;
    if (f->steps++ > MOST_STEPS || !bind(f, s->as.loop.var, min + iteration_at(extent, k))) return;
    if (s == f->loop) f->iteration = f->values[count];
    follow(f, s->as.loop.body);
    f->count = count;
  }
}

static void follow_store(Following *f, Stmt *s) {
  for (int i = 0; i < s->as.store.rank; i++) follow_expr(f, s->as.store.indices[i], s);
  follow_expr(f, s->as.store.value, s);
  touch(f, s->as.store.buffer, s->as.store.indices, true, s);
}

static void follow_if(Following *f, Stmt *s) {
  int64_t holds;
  if (!value_of(f, s->as.branch.condition, &holds)) return;
  Stmt *branch = holds ? s->as.branch.then_body : s->as.branch.else_body;
  if (branch) follow(f, branch);
}

static void follow_let(Following *f, Stmt *s) {
  int64_t value;
  int count = f->count;
  if (value_of(f, s->as.let.value, &value)) bind(f, s->as.let.var, value);
  follow(f, s->as.let.body);
  f->count = count;
}

static void follow_seq(Following *f, Stmt *s) {
  for (int i = 0; i < s->as.seq.count; i++) follow(f, s->as.seq.items[i]);
}

static void follow_allocate(Following *f, Stmt *s) {
  map_put(&f->inside, s->as.allocate.var, s);
  follow(f, s->as.allocate.body);
}

static void follow_body(Following *f, Stmt *s) {
  follow(f, lower_body(s));
}

static void (*const follow_kinds[])(Following *, Stmt *) = {
    [STMT_FOR] = follow_loop,
    [STMT_STORE] = follow_store,
    [STMT_IF] = follow_if,
    [STMT_LET] = follow_let,
    [STMT_SEQ] = follow_seq,
    [STMT_ALLOCATE] = follow_allocate,
    [STMT_DECL_BUFFER] = follow_body,
    [STMT_ALLOCATE_CONST] = follow_body,
    [STMT_ATTR] = follow_body, // the last kind
};

static void follow(Following *f, Stmt *s) {
  SourcePos outer = f->pos;
  if (s->pos.file) f->pos = s->pos;
  if (!f->found && follow_kinds[s->kind]) follow_kinds[s->kind](f, s);
  f->pos = outer;
}

// ---- Loops to look at, with those around them at their first iterations

typedef struct RaceSearch {
  Following outer;
  bool found;
} RaceSearch;

static bool enter(Visitor *visitor, Stmt *s) {
  RaceSearch *search = visitor->env;
  int64_t min, extent;
  if (s->kind != STMT_FOR) return true;
  if (!loop_range_of(&search->outer, s, &min, &extent) || extent < 1) return false;
  if (s->as.loop.kind == LOOP_PARALLEL || s->as.loop.kind == LOOP_VECTORIZED) {
    Following f = search->outer;
    f.loop = s;
    f.touched = map_new(&f.context->arena);
    f.inside = map_new(&f.context->arena);
    f.pos = s->pos;
    follow(&f, s);
    search->found |= f.found;
  }
  return bind(&search->outer, s->as.loop.var, min);
}

bool lower_has_races(Context *context, PrimFunc *func) {
  static const char *const passes[] = {"convert_blocks"};
  RaceSearch search = {.outer = {.context = context}};
  func = lower_run_passes(context, func, passes, COUNT_OF(passes), NULL);
  if (func) visit_stmt(&(Visitor){.env = &search, .enter_stmt = enter}, func->body);
  return search.found;
}
