// SPDX-License-Identifier: Apache-2.0
// Looks for two iterations of a parallel or vectorised loop that access one element, which at least
// one of them writes. Some iterations of each loop are followed with their numbers; accesses whose
// indices or conditions are data are left out, so that what is found is a fault.
//
//   for i in T.parallel(8):        iterations i = 0 and i = 1 of the parallel loop:
//     C[i // 2] = A[i]               both write C[0]
#include "lower/races.h"
#include "script/script.h"

enum {
  MOST_STEPS = 1 << 13,
  MOST_VARS = 64,
  FIRST_ITERATIONS = 6,
  MORE_ITERATIONS = 64, // where nothing is proved
};

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
  Map touched;        // data variable → Map* from the element's address + 1 to Touch*
  Map inside;         // data variables of allocations inside of the loop
  Map lets;           // variables of lets inside of the loop that have no number, to their values
  const char *thread; // sharing_threads of the loop
  Expr *vars[MOST_VARS];
  int64_t values[MOST_VARS];
  int count, steps;
  int followed; // so many first iterations of each loop, and the last one, are followed
  int sizes;    // the first of these variables are sizes of the function
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

// The first byte of the element in the buffer's memory.
static bool address_of(const Following *f, const Buffer *buffer, Expr *const *indices,
                       int64_t *address) {
  int64_t number = 0, offset;
  for (int d = 0; d < buffer->rank; d++) {
    int64_t index, step = 1;
    bool fits = value_of(f, indices[d], &index);
    if (buffer->strides) // the sum of products
      fits = fits && value_of(f, buffer->strides[d], &step) && mul_fits(index, step, &index);
    else // Horner's rule
      fits = fits && value_of(f, buffer->shape[d], &step) && mul_fits(number, step, &number);
    if (!fits) return false;
    number += index;
  }
  return value_of(f, buffer->offset, &offset) &&
         mul_fits(number + offset, buffer_element_bytes(buffer), address);
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

// " where n = 8", the sizes that were assumed and that the loops have.
static const char *sizes_text(const Following *f) {
  Text text = text_new(&f->context->arena);
  for (int i = 0; i < f->sizes; i++)
    if (stmt_uses(f->loop, f->vars[i]))
      text_printf(&text, "%s%s = %lld", text.size ? ", " : " where ", f->vars[i]->as.var->name,
                  (long long)f->values[i]);
  return text_string(&text);
}

static void report(Following *f, const Touch *first, bool writes, const char *element) {
  const char *name = f->loop->as.loop.var->as.var->name;
  const char *what = first->writes && writes ? "both write"
                     : writes                ? "the second writes and the first reads"
                                             : "the first writes and the second reads";
  f->found = true;
  diag_error(f->context, f->pos,
             "iterations %s = %lld and %s = %lld of a %s loop share %s%s: %s it", name,
             (long long)first->iteration, name, (long long)f->iteration, loop_races_kind(f->loop),
             element, sizes_text(f), what);
}

bool lower_sums_lanes(const Stmt *loop, const Stmt *by) {
  if (loop->as.loop.kind != LOOP_VECTORIZED || by->kind != STMT_STORE) return false;
  const Expr *value = by->as.store.value;
  for (int i = 0; i < value->count; i++)
    if (expr_loads_stored(value->args[i], by)) return true;
  return false;
}

// The expression with the numbers of the iteration, and with values in place of lets.
static Expr *at_iteration(const Following *f, Expr *e) {
  Context *context = f->context;
  Map values = map_new(&context->arena);
  for (int i = 0; i < f->lets.count; i++)
    map_put(&values, (const void *)(uintptr_t)f->lets.entries[i].key, f->lets.entries[i].value);
  for (int i = 0; i < f->count; i++)
    map_put(&values, f->vars[i], expr_int(context, f->vars[i]->type, f->values[i]));
  return substitute_expr(context, e, &values);
}

// The written value: where it is the same expression in two iterations, so is the element.
static Expr *value_written(const Following *f, const Stmt *by) {
  return at_iteration(f, by->as.store.value);
}

static bool is_fault(const Following *f, const Touch *first, bool writes, const Stmt *by) {
  if (first->iteration == f->iteration || !(first->writes || writes)) return false;
  if (first->by == by && lower_sums_lanes(f->loop, by)) return false;
  bool both = first->writes && writes && first->by == by;
  return !both || first->value != value_written(f, by);
}

// Threads of which each has memory of its own do not meet in it.
static bool is_shared(const Stmt *loop, const Buffer *buffer) {
  return loop->as.loop.kind != LOOP_THREAD ||
         scope_is_shared_by(buffer->scope, loop->as.loop.thread);
}

static bool is_over_threads(const Stmt *s) {
  return loop_thread_axis(s, NULL) >= 0;
}

static bool see_threads(Visitor *visitor, Stmt *s) {
  *(bool *)visitor->env |= is_over_threads(s);
  return true;
}

// The threads of a block share memory that is allocated inside of the loop over them; virtual
// threads have each their own then. With a loop over threads inside, which fills the memory, an
// iteration of the outer loop stands for all threads.
static const char *sharing_threads(const Stmt *loop) {
  bool fills = false;
  if (!is_over_threads(loop)) return NULL;
  visit_stmt(&(Visitor){.env = &fills, .enter_stmt = see_threads}, loop->as.loop.body);
  return fills ? NULL : loop->as.loop.thread;
}

static void touch(Following *f, Buffer *buffer, Expr *const *indices, bool writes, const Stmt *by) {
  int64_t address;
  if (f->found || map_contains(&f->inside, buffer->data) || !is_shared(f->loop, buffer) ||
      !address_of(f, buffer, indices, &address))
    return;
  Arena *arena = &f->context->arena;
  Map *elements = map_find(&f->touched, buffer->data);
  if (!elements) {
    elements = arena_new(arena, Map);
    *elements = map_new(arena);
    map_put(&f->touched, buffer->data, elements);
  }
  Touch *first = map_find(elements, (uintptr_t)address + 1);
  if (!first) {
    first = arena_new(arena, Touch);
    *first = (Touch){f->iteration, writes, by, writes ? value_written(f, by) : NULL};
    map_put(elements, (uintptr_t)address + 1, first);
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
static int64_t iteration_at(const Following *f, int64_t extent, int64_t number) {
  return number < f->followed || extent <= f->followed ? number : extent - 1;
}

static void follow_loop(Following *f, Stmt *s) {
  int64_t min, extent;
  if (!loop_range_of(f, s, &min, &extent)) return;
  for (int64_t k = 0; k < MIN_OF(extent, f->followed + 1) && !f->found; k++) {
    int count = f->count;
    if (f->steps++ > MOST_STEPS || !bind(f, s->as.loop.var, min + iteration_at(f, extent, k)))
      return;
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
  follow_expr(f, s->as.let.value, s);
  if (!value_of(f, s->as.let.value, &value) || !bind(f, s->as.let.var, value))
    map_put(&f->lets, s->as.let.var, at_iteration(f, s->as.let.value));
  follow(f, s->as.let.body);
  f->count = count;
}

static void follow_seq(Following *f, Stmt *s) {
  for (int i = 0; i < s->as.seq.count; i++) follow(f, s->as.seq.items[i]);
}

static void follow_allocate(Following *f, Stmt *s) {
  if (!f->thread || !scope_is_shared_by(s->as.allocate.var->as.var->scope, f->thread))
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

// The state before a statement around the visited one.
typedef struct EnteredStmt {
  int mark;  // of the analyzer
  int bound; // variables of `outer`
} EnteredStmt;

typedef struct RaceSearch {
  Context *context;
  Following outer;
  Analyzer *analyzer;
  Array(VarRange) ranges; // of the loops around the visited statement
  Array(EnteredStmt) entered;
  LoopRacesList *out;
  bool threads; // look at loops over threads instead
  bool found;
} RaceSearch;

static const char *access_text(Context *context, const LoopAccess *access) {
  if (!access->indices) return access->buffer->name;
  Expr *load = expr_load(context, access->buffer, access->indices, access->buffer->rank);
  return script_expr_text(context, load);
}

static LoopRaces undecided(Context *context, const LoopAccesses *accesses, RaceDoubt doubt) {
  LoopRaces races = {.verdict = VERDICT_UNDECIDED, .why = doubt.why};
  if (!doubt.second) {
    races.access = script_expr_text(context, accesses->opaque);
    races.pos = accesses->opaque_pos;
    return races;
  }
  const LoopAccess *at = doubt.second->writes ? doubt.second : doubt.first;
  const LoopAccess *other = at == doubt.first ? doubt.second : doubt.first;
  races.access = access_text(context, at);
  races.other = other == at ? NULL : access_text(context, other);
  races.writes = at->writes;
  races.pos = at->pos;
  return races;
}

// Follows some iterations of a loop; true with a diagnostic when two of them meet.
static bool find_pair(RaceSearch *search, Stmt *loop, int followed) {
  Following f = search->outer;
  f.followed = followed;
  f.loop = loop;
  f.thread = sharing_threads(loop);
  f.touched = map_new(&f.context->arena);
  f.inside = map_new(&f.context->arena);
  f.lets = map_new(&f.context->arena);
  f.pos = loop->pos;
  follow(&f, loop);
  return f.found;
}

static LoopAccesses shared_accesses_of(Context *context, const Stmt *loop) {
  LoopAccesses accesses =
      lower_accesses_of_thread(context, loop->as.loop.body, sharing_threads(loop));
  int kept = 0;
  for (int i = 0; i < accesses.items.count; i++)
    if (is_shared(loop, accesses.items.items[i].buffer))
      accesses.items.items[kept++] = accesses.items.items[i];
  accesses.items.count = kept;
  return accesses;
}

// The answer for a part of the same loop, which was split at barriers; or NULL.
static LoopRaces *answer_for(const RaceSearch *search, const Stmt *loop) {
  for (int i = 0; search->threads && i < search->out->count; i++) {
    const Stmt *other = search->out->items[i].loop;
    if (loop->pos.file && loop->pos.file == other->pos.file &&
        loop->pos.begin == other->pos.begin && loop->pos.end == other->pos.end &&
        !strcmp(loop->as.loop.thread, other->as.loop.thread))
      return &search->out->items[i];
  }
  return NULL;
}

static void add_answer(RaceSearch *search, LoopRaces *known, const LoopRaces *races) {
  search->found |= races->verdict == VERDICT_NO;
  if (!known) array_push(&search->context->arena, search->out, *races);
  if (known && (races->verdict == VERDICT_NO || known->verdict == VERDICT_YES)) *known = *races;
}

static void look_at(RaceSearch *search, Stmt *loop) {
  Context *context = search->context;
  LoopRaces *known = answer_for(search, loop);
  if (known && known->verdict == VERDICT_NO) return;
  LoopAccesses accesses = shared_accesses_of(context, loop);
  RaceQuestion question = {
      context, search->analyzer, loop, search->ranges.items, search->ranges.count, &accesses};
  RaceDoubt doubt;
  LoopRaces races = {.verdict = VERDICT_YES};
  // The threads of a loop may wait for one another in a call.
  bool follows = !search->threads || !accesses.opaque;
  if (follows && find_pair(search, loop, FIRST_ITERATIONS))
    races.verdict = VERDICT_NO;
  else if (!lower_prove_no_races(&question, &doubt))
    races = follows && find_pair(search, loop, MORE_ITERATIONS)
                ? (LoopRaces){.verdict = VERDICT_NO}
                : undecided(context, &accesses, doubt);
  races.loop = loop;
  add_answer(search, known, &races);
}

static bool is_searched(const Stmt *loop, bool threads) {
  LoopKind kind = loop->as.loop.kind;
  return threads ? kind == LOOP_THREAD : kind == LOOP_PARALLEL || kind == LOOP_VECTORIZED;
}

static void enter_loop(RaceSearch *search, Stmt *s) {
  VarRange range = loop_range(s);
  int64_t min, extent;
  bool known = loop_range_of(&search->outer, s, &min, &extent);
  if (is_searched(s, search->threads) && !(known && extent < 2)) look_at(search, s);
  analyzer_bind_kept(search->analyzer, range.var, range.min, range.extent);
  array_push(&search->context->arena, &search->ranges, range);
  if (known) bind(&search->outer, s->as.loop.var, min);
}

static void enter_let(RaceSearch *search, Stmt *s) {
  int64_t value;
  if (!dtype_is_int(s->as.let.var->type) || expr_reads_memory(s->as.let.value)) return;
  analyzer_bind_value(search->analyzer, s->as.let.var, s->as.let.value);
  if (value_of(&search->outer, s->as.let.value, &value))
    bind(&search->outer, s->as.let.var, value);
}

static bool enter(Visitor *visitor, Stmt *s) {
  RaceSearch *search = visitor->env;
  EnteredStmt before = {analyzer_mark(search->analyzer), search->outer.count};
  array_push(&search->context->arena, &search->entered, before);
  if (s->kind == STMT_FOR) enter_loop(search, s);
  if (s->kind == STMT_LET) enter_let(search, s);
  return true;
}

static void leave(Visitor *visitor, Stmt *s) {
  RaceSearch *search = visitor->env;
  EnteredStmt before = search->entered.items[--search->entered.count];
  if (s->kind == STMT_FOR) search->ranges.count--;
  analyzer_reset(search->analyzer, before.mark);
  search->outer.count = before.bound;
}

// Sizes that are not known are followed with one value.
static void assume_sizes(RaceSearch *search, const PrimFunc *func) {
  ExprArray sizes = lower_free_sizes(search->context, func);
  for (int i = 0; i < sizes.count; i++) bind(&search->outer, sizes.items[i], ASSUMED_SIZE);
}

typedef struct LoopSearch {
  bool threads, found;
} LoopSearch;

// A store of several lanes may become a vectorised loop.
static bool see_searched(Visitor *visitor, Stmt *s) {
  LoopSearch *search = visitor->env;
  if (s->kind == STMT_FOR) search->found |= is_searched(s, search->threads);
  if (s->kind == STMT_STORE) search->found |= s->as.store.value->type.lanes > 1;
  return !search->found;
}

static bool has_searched_loops(const PrimFunc *func, bool threads) {
  LoopSearch search = {.threads = threads};
  visit_stmt(&(Visitor){.env = &search, .enter_stmt = see_searched}, func->body);
  return search.found;
}

static bool find_races(Context *context, PrimFunc *func, bool threads, LoopRacesList *out) {
  static const char *const passes[] = {"reduce_over_threads", "split_lanes", "convert_blocks"};
  LoopRacesList unread = {0};
  RaceSearch search = {.context = context,
                       .outer = {.context = context},
                       .analyzer = analyzer_new(context),
                       .threads = threads,
                       .out = out ? out : &unread};
  LowerOptions options = {.drop_result = true};
  if (lower_is_packed(func) || !has_searched_loops(func, threads)) return false;
  func = lower_run_passes(context, func, passes + !threads, COUNT_OF(passes) - !threads, &options);
  LowerReport report = {0};
  LowerState state = {.context = context, .options = &options, .report = &report};
  int errors = context->error_count;
  if (func && threads) func = lower_phases(&state, func);
  if (!func) return context->error_count > errors;
  assume_sizes(&search, func);
  search.outer.sizes = search.outer.count;
  visit_stmt(&(Visitor){.env = &search, .enter_stmt = enter, .leave_stmt = leave}, func->body);
  return search.found;
}

bool lower_find_races(Context *context, PrimFunc *func, LoopRacesList *out) {
  return find_races(context, func, false, out);
}

bool lower_find_thread_races(Context *context, PrimFunc *func, LoopRacesList *out) {
  return find_races(context, func, true, out);
}
