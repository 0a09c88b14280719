// SPDX-License-Identifier: Apache-2.0
// The table that orders the passes, and what is done around each: facts, the verifier, printing,
// stopping, time and counts, and running the function before and after on the same inputs.
#include "lower/pass.h"

#include "config.h"
#include "interp/interp.h"
#include "script/script.h"

#include <time.h>

#define AFTER_BLOCKS FACT_NO_BLOCKS
#define CONDITIONS (FACT_NO_BLOCKS | FACT_COMPACT)

const LowerPass lower_passes[] = {
    {"convert_blocks", lower_convert_blocks, 0, FACT_NO_BLOCKS, FACT_SIMPLE, STAGE_LOOPS,
     "blocks become loops, conditions and allocations"},
    {"simplify_loops", lower_simplify, AFTER_BLOCKS, FACT_SIMPLE, 0, STAGE_LOOPS,
     "indices and conditions are simplified"},
    {"compact_buffers", lower_compact_buffers, AFTER_BLOCKS, FACT_COMPACT, FACT_SIMPLE, STAGE_LOOPS,
     "allocations shrink to what is alive in them"},
    {"guard_products", lower_guard_products, AFTER_BLOCKS, 0, 0, STAGE_LOOPS,
     "products with padding are left out"},
    {"hoist_conditions", lower_hoist_conditions, AFTER_BLOCKS, 0, FACT_SIMPLE, STAGE_LOOPS,
     "conditions move outward and become loop bounds"},
    {"partition_loops", lower_partition_loops, AFTER_BLOCKS, FACT_PARTITIONED, FACT_SIMPLE,
     STAGE_LOOPS, "loops are cut where conditions become constant"},
    {"tighten_loops", lower_hoist_conditions, AFTER_BLOCKS, 0, FACT_SIMPLE, STAGE_LOOPS,
     "what is left of conditions in the parts becomes loop bounds"},
    {"flatten_buffers", lower_flatten_buffers, AFTER_BLOCKS, FACT_FLAT, FACT_SIMPLE, STAGE_FLAT,
     "N-d accesses become flat ones"},
    {"simplify_flat", lower_simplify, FACT_FLAT, FACT_SIMPLE, 0, STAGE_FLAT,
     "indices and conditions are simplified"},
    {"unroll_loops", lower_unroll_loops, AFTER_BLOCKS, FACT_NO_UNROLLED, FACT_SIMPLE, STAGE_FLAT,
     "unrolled loops are written out"},
    {"simplify_unrolled", lower_simplify, FACT_NO_UNROLLED, FACT_SIMPLE, 0, STAGE_FLAT,
     "indices and conditions are simplified"},
    {"vectorize_loops", lower_vectorize_loops, FACT_FLAT | FACT_NO_UNROLLED, FACT_NO_VECTORIZED,
     FACT_SIMPLE, STAGE_VECTOR, "vectorised loops become vectors"},
    {"simplify_vectors", lower_simplify, FACT_NO_VECTORIZED, FACT_SIMPLE, 0, STAGE_VECTOR,
     "indices and conditions are simplified"},
    {"promote_registers", lower_promote_registers,
     FACT_FLAT | FACT_NO_UNROLLED | FACT_NO_VECTORIZED, FACT_REGISTERS, 0, STAGE_VECTOR,
     "local buffers with constant indices become registers"},
    {"form_parallel_regions", lower_form_parallel_regions, FACT_FLAT, FACT_REGIONS, FACT_SIMPLE,
     STAGE_VECTOR, "parallel loops outermost, workspace around them"},
    {"simplify_regions", lower_simplify, FACT_REGIONS, FACT_SIMPLE, 0, STAGE_VECTOR,
     "indices and conditions are simplified"},
    {"lower_divisions", lower_divisions, FACT_SIMPLE, 0, FACT_SIMPLE, STAGE_LOWERED,
     "floored divisions become shifts, masks and truncated ones"},
    {"hoist_addresses", lower_hoist_addresses, FACT_REGIONS, 0, 0, STAGE_LOWERED,
     "parts of indices are computed outside of the loops they do not change in"},
    {NULL, NULL, 0, 0, 0, 0, NULL},
};

int lower_pass_index(const char *name) {
  for (int i = 0; lower_passes[i].name; i++)
    if (strcmp(lower_passes[i].name, name) == 0) return i;
  return -1;
}

const LowerPass *lower_pass_find(const char *name) {
  int i = lower_pass_index(name);
  return i < 0 ? NULL : &lower_passes[i];
}

PrimFunc *lower_simplify(LowerState *state, PrimFunc *func) {
  Stmt *body = simplify_stmt(state->context, func->body);
  return body == func->body ? func : prim_func_with_body(state->context, func, body);
}

// ---- Reports

const char *lower_count_name(LowerCount kind) {
  static const char *const names[LOWER_COUNT_KINDS] = {
      [LOWER_VECTORIZED] = "loops vectorised",
      [LOWER_SCALARIZED] = "parts of vectorised loops that stayed scalar",
      [LOWER_GATHERS] = "vector accesses that are not contiguous",
      [LOWER_UNROLLED] = "loops unrolled",
      [LOWER_PARTITIONED] = "loops partitioned",
      [LOWER_NOT_PARTITIONED] = "loops not partitioned",
      [LOWER_REGISTERS] = "registers",
      [LOWER_NOT_REGISTERS] = "local buffers that stayed in memory",
      [LOWER_SERIALIZED] = "parallel loops that became serial",
  };
  return names[kind];
}

bool lower_count_is_loss(LowerCount kind) {
  static const bool loss[LOWER_COUNT_KINDS] = {
      [LOWER_SCALARIZED] = true,
      [LOWER_NOT_PARTITIONED] = true,
      [LOWER_NOT_REGISTERS] = true,
      [LOWER_SERIALIZED] = true,
  };
  return loss[kind];
}

void lower_note(LowerState *state, LowerCount kind, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const char *note = arena_vprintf(&state->context->lasting, format, args);
  va_end(args);
  if (kind < LOWER_COUNT_KINDS) state->report->counts[kind]++;
  array_push(&state->context->lasting, &state->report->notes, (void *)note);
}

// ---- Around a pass

static bool is_named(const char *wanted, const char *name) {
  return wanted && (strcmp(wanted, name) == 0 || strcmp(wanted, "all") == 0);
}

static void print_func(const LowerState *state, const LowerPass *pass, const PrimFunc *func) {
  FILE *out = state->options->print_to ? state->options->print_to : stderr;
  Text text = text_new(&state->context->arena);
  script_print_prim_func(state->context, func, &text, &(ScriptOptions){.no_imports = true});
  fprintf(out, "# after %s\n%s\n", pass->name, text_string(&text));
}

typedef struct FreeSizes {
  Context *context;
  Map seen;
  Array(InterpSize) sizes;
} FreeSizes;

static bool note_size(Visitor *visitor, Expr *e) {
  static const int64_t values[] = {5, 7, 3, 11, 4, 13};
  FreeSizes *sizes = visitor->env;
  if (e->op != EXPR_VAR || map_contains(&sizes->seen, e)) return true;
  map_put(&sizes->seen, e, e);
  InterpSize size = {e, values[sizes->sizes.count % COUNT_OF(values)]};
  array_push(&sizes->context->arena, &sizes->sizes, size);
  return true;
}

// Values for the symbolic sizes and scalar parameters of a function that is run for comparison.
static FreeSizes choose_sizes(Context *context, const PrimFunc *func) {
  FreeSizes sizes = {.context = context, .seen = map_new(&context->arena)};
  Visitor visitor = {.env = &sizes, .enter_expr = note_size};
  for (int i = 0; i < func->param_count; i++) {
    const Buffer *b = func->buffers[i];
    if (!b && dtype_is_int(func->params[i]->type)) note_size(&visitor, func->params[i]);
    for (int k = 0; b && k < b->rank; k++) visit_expr(&visitor, b->shape[k]);
    for (int k = 0; b && b->strides && k < b->rank; k++) visit_expr(&visitor, b->strides[k]);
  }
  return sizes;
}

static bool compare(LowerState *state, const LowerPass *pass, const PrimFunc *before,
                    const PrimFunc *after) {
  Context *context = state->context;
  FreeSizes sizes = choose_sizes(context, before);
  InterpCompare how = {.sizes = sizes.sizes.items,
                       .size_count = sizes.sizes.count,
                       .seed = state->options->seed,
                       .fill = INTERP_FILL_EIGHTHS,
                       .rtol = 1e-4,
                       .atol = 1e-6,
                       .options = {.poison = true}};
  InterpDifference difference = {0};
  int errors = context->error_count;
  if (interp_compare(context, before, after, &how, &difference)) return true;
  if (context->error_count > errors)
    return diag_note(context, before->pos, "while running %s before and after the pass %s",
                     before->name, pass->name);
  return diag_error(context, before->pos, "the pass %s changed the result of %s: %s", pass->name,
                    before->name, interp_difference_text(&context->arena, before, &difference));
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static PrimFunc *run_timed(LowerState *state, const LowerPass *pass, PrimFunc *func) {
  LowerPassTime *time = &state->report->passes[lower_pass_index(pass->name)];
  double begin = now();
  PrimFunc *next = pass->run(state, func);
  time->seconds += now() - begin;
  time->runs++;
  time->changes += next != func;
  return next;
}

static PrimFunc *run_pass(LowerState *state, const LowerPass *pass, PrimFunc *func) {
  Context *context = state->context;
  const char *outer = context->current_pass;
  context->current_pass = pass->name;
  PrimFunc *next = run_timed(state, pass, func);
  const LowerOptions *options = state->options;
  if (next && options->after) next = options->after(options->after_env, pass->name, next);
  bool ok = next != NULL;
  bool verify = PLEAT_VERIFY_EACH || state->options->verify || state->options->verify_each;
  if (ok && is_named(state->options->print_after, pass->name)) print_func(state, pass, next);
  if (ok && verify) ok = verify_prim_func(context, next, pass->stage);
  if (ok && state->options->verify_each && next != func) ok = compare(state, pass, func, next);
  context->current_pass = outer;
  return ok ? next : NULL;
}

// ---- Running

static LowerState new_state(Context *context, const LowerOptions *options) {
  static const LowerOptions nothing;
  LowerState state = {context, options ? options : &nothing, NULL};
  state.report =
      state.options->report ? state.options->report : arena_new(&context->arena, LowerReport);
  return state;
}

PrimFunc *lower_prim_func(Context *context, PrimFunc *func, const LowerOptions *options) {
  LowerState state = new_state(context, options);
  for (int i = 0; lower_passes[i].name && func; i++) {
    func = run_pass(&state, &lower_passes[i], func);
    const char *stop = state.options->stop_after;
    if (stop && strcmp(stop, lower_passes[i].name) == 0) break;
  }
  return func;
}

static bool enter_fact(Visitor *visitor, Stmt *s) {
  unsigned *facts = visitor->env;
  if (s->kind == STMT_BLOCK) *facts &= ~(unsigned)FACT_NO_BLOCKS;
  if (s->kind == STMT_FOR && s->as.loop.kind == LOOP_UNROLLED)
    *facts &= ~(unsigned)FACT_NO_UNROLLED;
  if (s->kind == STMT_FOR && s->as.loop.kind == LOOP_VECTORIZED)
    *facts &= ~(unsigned)FACT_NO_VECTORIZED;
  bool store = s->kind == STMT_STORE;
  if (store && s->as.store.rank != s->as.store.buffer->separator_count + 1)
    *facts &= ~(unsigned)FACT_FLAT;
  if (lower_is_regions(s)) *facts |= FACT_REGIONS;
  return true;
}

// What can be seen of a function that comes from text; the rest is taken as given.
static unsigned facts_of(const PrimFunc *func) {
  unsigned facts = ~(unsigned)FACT_REGIONS;
  Visitor visitor = {.env = &facts, .enter_stmt = enter_fact};
  visit_stmt(&visitor, func->body);
  return facts;
}

static const LowerPass *named_pass(Context *context, const char *name) {
  const LowerPass *pass = lower_pass_find(name);
  if (pass) return pass;
  const char *names[LOWER_MAX_PASSES];
  int count = 0;
  while (lower_passes[count].name) names[count] = lower_passes[count].name, count++;
  const char *nearest = nearest_name(name, names, count);
  diag_error(context, (SourcePos){0}, "unknown pass '%s'%s%s%s", name,
             nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
  return NULL;
}

static const char *fact_text(unsigned facts) {
  static const struct {
    unsigned fact;
    const char *text;
  } texts[] = {
      {FACT_NO_BLOCKS, "it still has blocks (convert_blocks removes them)"},
      {FACT_FLAT, "it still has N-d accesses (flatten_buffers removes them)"},
      {FACT_NO_UNROLLED, "it still has unrolled loops (unroll_loops removes them)"},
      {FACT_NO_VECTORIZED, "it still has vectorised loops (vectorize_loops removes them)"},
      {FACT_REGIONS, "it has no parallel regions yet (form_parallel_regions makes them)"},
  };
  for (int i = 0; i < COUNT_OF(texts); i++)
    if (facts & texts[i].fact) return texts[i].text;
  return "it is not simplified";
}

PrimFunc *lower_run_passes(Context *context, PrimFunc *func, const char *const *names, int count,
                           const LowerOptions *options) {
  LowerState state = new_state(context, options);
  for (int i = 0; i < count && func; i++) {
    const LowerPass *pass = named_pass(context, names[i]);
    if (!pass) return NULL;
    unsigned missing = pass->needs & ~facts_of(func);
    if (missing) {
      diag_error(context, func->pos, "%s cannot run on %s: %s", pass->name, func->name,
                 fact_text(missing));
      return NULL;
    }
    func = run_pass(&state, pass, func);
  }
  return func;
}
