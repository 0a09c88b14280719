// SPDX-License-Identifier: Apache-2.0
// Runs passes, and does what is done around each of them: facts are checked and kept, the verifier
// runs, the function is printed, time and changes are counted, and the function before and after
// the pass is run on the same inputs.
#include "lower/pass.h"

#include "config.h"
#include "interp/interp.h"
#include "script/script.h"

#include <time.h>

// The things that the first arguments allow are always done.
PrimFunc *lower_simplify(LowerState *state, PrimFunc *func) {
  static const char *const always[] = {
      "transitively_prove_inequalities", "propagate_knowns_to_prove_conditional",
      "propagate_knowns_to_simplify_expressions", "apply_constraints_to_boolean_branches"};
  bool unused, and_of_ors = false;
  for (int i = 0; i < COUNT_OF(always); i++)
    if (!lower_take_flag(state, always[i], &unused)) return NULL;
  if (!lower_take_flag(state, "convert_boolean_to_and_of_ors", &and_of_ors)) return NULL;
  Stmt *body = arith_simplify_body(state->context, func, and_of_ors);
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

static bool is_named(const char *wanted, const LowerPass *pass) {
  return wanted && (lower_pass_find(wanted) == pass || strcmp(wanted, "all") == 0);
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

static InterpCompare how_to_compare(Context *context, const PrimFunc *func,
                                    const LowerOptions *options) {
  FreeSizes sizes = choose_sizes(context, func);
  return (InterpCompare){.sizes = sizes.sizes.items,
                         .size_count = sizes.sizes.count,
                         .seed = options->seed,
                         .fill = INTERP_FILL_EIGHTHS,
                         .rtol = 1e-4,
                         .atol = 1e-6,
                         .module_a = options->module,
                         .module_b = options->module,
                         .options = {.poison = true}};
}

bool lower_can_compare(Context *context, const PrimFunc *func, const LowerOptions *options,
                       int64_t max_steps) {
  InterpCompare how = how_to_compare(context, func, options);
  InterpDifference difference;
  int diags = context->diags.count, errors = context->error_count;
  how.options.report_reads = true;
  how.options.max_steps = max_steps;
  bool ok = interp_compare(context, func, func, &how, &difference);
  diag_forget(context, diags, errors);
  return ok;
}

// Do both functions take arrays of the same shapes?
static bool same_params(const PrimFunc *a, const PrimFunc *b) {
  for (int i = 0; i < a->param_count && i < b->param_count; i++)
    if (a->buffers[i] && b->buffers[i] && !buffer_same_shape(a->buffers[i], b->buffers[i]))
      return false;
  return true;
}

static bool see_undefined(Visitor *visitor, Expr *e) {
  *(bool *)visitor->env |= lower_is_undefined(e);
  return false;
}

// Does the function compute with T.undef, so that some of its results may be anything?
static bool has_undefined(const PrimFunc *func) {
  bool found = false;
  visit_stmt(&(Visitor){.env = &found, .enter_expr = see_undefined}, func->body);
  return found;
}

static bool see_allreduce(Visitor *visitor, Expr *e) {
  *(bool *)visitor->env |= e->op == EXPR_INTRINSIC && !strcmp(e->as.s, "tvm_thread_allreduce");
  return true;
}

// The function as the interpreter runs it, which has no reductions over threads.
static PrimFunc *without_allreduce(LowerState *state, PrimFunc *func) {
  bool found = false;
  visit_stmt(&(Visitor){.env = &found, .enter_expr = see_allreduce}, func->body);
  if (found) func = lower_convert_blocks(state, func);
  return found && func ? lower_split_at_barriers(state, func) : func;
}

// A function whose arrays have got other layouts is not compared, since it takes other arrays.
static bool compare(LowerState *state, const LowerPass *pass, PrimFunc *before, PrimFunc *after) {
  Context *context = state->context;
  if (pass->changes_params && !same_params(before, after)) return true;
  if (has_undefined(before)) return true;
  before = without_allreduce(state, before);
  after = before ? without_allreduce(state, after) : NULL;
  if (!after) return false; // it says why
  InterpCompare how = how_to_compare(context, before, state->options);
  InterpDifference difference = {0};
  int diags = context->diags.count, errors = context->error_count;
  bool out_of_steps = false;
  how.options.max_steps = state->options->most_steps;
  how.options.out_of_steps = &out_of_steps;
  if (interp_compare(context, before, after, &how, &difference)) return true;
  if (out_of_steps) {
    diag_forget(context, diags, errors);
    return true;
  }
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
  int row = lower_pass_index(pass->name);
  if (row < 0) return pass->run(state, func);
  LowerPassTime *time = &state->report->passes[row];
  double begin = now();
  PrimFunc *next = pass->run(state, func);
  time->seconds += now() - begin;
  time->runs++;
  time->changes += next != func;
  return next;
}

// ---- Facts

// The facts that hold of the function, and which pass took each of the others away.
typedef struct FactState {
  unsigned facts;
  const LowerPass *broken_by[LOWER_FACT_COUNT]; // by bit; NULL: the fact did not hold before
} FactState;

static void apply_facts(FactState *state, const LowerPass *pass) {
  for (int i = 0; i < LOWER_FACT_COUNT; i++)
    if (state->facts & pass->breaks & 1u << i) state->broken_by[i] = pass;
  state->facts = (state->facts & ~pass->breaks) | pass->gives;
}

// The table is wrong where a pass of ours lacks a fact, or where a fact of the table does not hold.
static void check_needs(Context *context, const FactState *state, unsigned needs,
                        const char *reader) {
  unsigned missing = needs & ~state->facts;
  if (missing)
    bug(context, "%s needs what no pass before it gives: %s", reader,
        lower_facts_text(&context->arena, missing));
}

static void check_given(Context *context, const FactState *state, const LowerPass *pass,
                        const PrimFunc *func) {
  unsigned missing = state->facts & ~lower_facts_of(func);
  if (missing)
    bug(context, "after %s this does not hold as its row says: %s", pass->name,
        lower_facts_text(&context->arena, missing));
}

static void check_order(Context *context) {
  const LowerOrder *order = lower_order_broken();
  if (order)
    bug(context, "%s does not run before %s: %s", order->before, order->after, order->because);
}

// The name of a pass, and in parentheses TVM's, where it has one.
static const char *both_names(Context *context, const LowerPass *pass) {
  if (!pass->other_names) return pass->name;
  int length = (int)strcspn(pass->other_names, " ");
  return arena_printf(&context->arena, "%s (%.*s)", pass->name, length, pass->other_names);
}

// Checks the needs of a pass in a list that a user gives.
static bool report_needs(Context *context, const FactState *state, const LowerPass *pass,
                         const PrimFunc *func) {
  unsigned missing = pass->needs & ~state->facts, first;
  if (!missing) return true;
  const char *absent = lower_fact_absent(missing, &first);
  const LowerPass *breaker = state->broken_by[__builtin_ctz(first)];
  const char *giver = both_names(context, lower_pass_giving(first));
  if (!breaker)
    return diag_error(context, func->pos, "%s cannot run on %s, which %s; run %s first", pass->name,
                      func->name, absent, giver);
  return diag_error(context, func->pos,
                    "%s cannot run on %s, which perhaps %s after %s; run %s again first",
                    pass->name, func->name, absent, breaker->name, giver);
}

static bool report_packed(Context *context, const LowerPass *pass, const PrimFunc *func) {
  if (pass->takes_packed || !lower_is_packed(func)) return true;
  return diag_error(context, func->pos,
                    "%s cannot run on %s, whose arguments are packed; run it before make_packed",
                    pass->name, func->name);
}

// The strictest level whose conditions these facts promise.
static IrLevel level_of(unsigned facts) {
  unsigned vector = LOWER_FACT_NO_UNROLLED | LOWER_FACT_NO_VECTORIZED;
  if (!(facts & LOWER_FACT_NO_BLOCKS)) return IR_LEVEL_TENSOR;
  if (!(facts & LOWER_FACT_FLAT)) return IR_LEVEL_LOOPS;
  if ((facts & vector) != vector) return IR_LEVEL_FLAT;
  return facts & LOWER_FACT_REGIONS ? IR_LEVEL_LOWERED : IR_LEVEL_VECTOR;
}

// ---- Arguments

static const PyNode *argument_of(const LowerState *state, const char *name) {
  int i = text_word_index(state->pass->signature, name);
  return i < 0 ? NULL : state->args[i];
}

bool lower_take_flag(LowerState *state, const char *name, bool *value) {
  const PyNode *node = argument_of(state, name);
  if (!node) return true;
  bool is_flag = node->kind == PY_BOOL || (node->kind == PY_INT && (node->i == 0 || node->i == 1));
  if (is_flag) *value = node->i != 0;
  return is_flag || diag_error(state->context, node->pos, "%s: %s is True or False, saw %s",
                               state->pass->name, name, py_kind_name(node->kind));
}

bool lower_take_number(LowerState *state, const char *name, int64_t *value) {
  const PyNode *node = argument_of(state, name);
  if (!node) return true;
  bool is_number = node->kind == PY_INT && !node->text && node->i >= 0;
  if (is_number) *value = node->i;
  return is_number ||
         diag_error(state->context, node->pos, "%s: %s is an integer that is at least 0, saw %s",
                    state->pass->name, name, py_kind_name(node->kind));
}

bool lower_take_word(LowerState *state, const char *name, const char *word, bool *given) {
  const PyNode *node = argument_of(state, name);
  *given = node && node->kind == PY_STRING && strcmp(node->text, word) == 0;
  return !node || *given ||
         diag_error(state->context, node->pos, "%s: %s can only be '%s'", state->pass->name, name,
                    word);
}

bool lower_take_choice(LowerState *state, const char *name, const char *words, int *number) {
  const PyNode *node = argument_of(state, name);
  if (!node) return true;
  int i = node->kind == PY_STRING ? text_word_index(words, node->text) : -1;
  if (i >= 0) *number = i;
  return i >= 0 || diag_error(state->context, node->pos, "%s: %s is one of these, in quotes: %s",
                              state->pass->name, name, words);
}

bool lower_expect_flag(LowerState *state, const char *name, bool expected) {
  bool value = expected;
  if (!lower_take_flag(state, name, &value)) return false;
  return value == expected ||
         diag_error(state->context, argument_of(state, name)->pos, "%s: %s can only be %s",
                    state->pass->name, name, expected ? "True" : "False");
}

// ---- Running

// The verifier runs after each pass in all builds.
static bool is_well_formed(Context *context, const LowerPass *pass, const PrimFunc *func,
                           unsigned facts) {
  if (verify_prim_func(context, func, level_of(facts))) return true;
  return diag_note(context, func->pos, "the pass %s made this of %s, which is a fault of Pleat",
                   pass->name, func->name);
}

static bool checks_facts(const LowerState *state) {
  return PLEAT_VERIFY_EACH || state->options->verify || state->options->verify_each;
}

// An argument may leave out what the row of the pass promises, such as that no loop stays unrolled.
static void apply_arguments(const LowerState *state, FactState *facts, const PrimFunc *func) {
  for (int i = 0; i < PY_MOST_ARGUMENTS; i++)
    if (state->args[i]) facts->facts &= lower_facts_of(func);
}

static PrimFunc *run_pass(LowerState *state, FactState *facts, const LowerPass *pass,
                          PrimFunc *func) {
  Context *context = state->context;
  const char *outer = context->current_pass;
  context->current_pass = pass->name;
  context_poll(context);
  state->pass = pass;
  IrLevel level = level_of(facts->facts);
  PrimFunc *next = run_timed(state, pass, func);
  apply_facts(facts, pass);
  if (next) apply_arguments(state, facts, next);
  if (next && checks_facts(state)) check_given(context, facts, pass, next);
  const LowerOptions *options = state->options;
  if (next && options->after) next = options->after(options->after_env, pass->name, next);
  bool ok = next != NULL;
  if (ok && is_named(options->print_after, pass)) print_func(state, pass, next);
  bool is_known = next == func && level_of(facts->facts) == level; // verified before the pass
  if (ok && !is_known) ok = is_well_formed(context, pass, next, facts->facts);
  if (ok && options->verify_each && next != func && !lower_is_packed(next))
    ok = compare(state, pass, func, next);
  context->current_pass = outer;
  return ok ? next : NULL;
}

static LowerState new_state(Context *context, const LowerOptions *options) {
  static const LowerOptions nothing;
  LowerState state = {.context = context, .options = options ? options : &nothing};
  state.report =
      state.options->report ? state.options->report : arena_new(&context->arena, LowerReport);
  return state;
}

// Assumes no fact of the function, so that the rows of the table must give all that they need.
PrimFunc *lower_prim_func(Context *context, PrimFunc *func, const LowerOptions *options) {
  if (!lower_check_runnable(context, func) || !lower_check_nested_threads(context, func))
    return NULL;
  LowerState state = new_state(context, options);
  FactState facts = {0};
  state.compiles = true;
  const char *stop = state.options->stop_after;
  if (checks_facts(&state)) check_order(context);
  for (const LowerPass *pass = lower_passes; pass->name && func; pass++) {
    check_needs(context, &facts, pass->needs, pass->name);
    func = run_pass(&state, &facts, pass, func);
    if (stop && lower_pass_find(stop) == pass) return func;
  }
  if (!func || !lower_check_defined(context, func)) return NULL;
  check_needs(context, &facts, LOWER_FACTS_ALL, "a code generator");
  return func;
}

const char *lower_pass_suggestion(Context *context, const char *name) {
  const char *names[2 * LOWER_MAX_PASSES + 1] = {"lower"};
  int count = 1;
  for (; lower_pass_at(count - 1); count++) names[count] = lower_pass_at(count - 1)->name;
  return suggestion_of(&context->arena, name, names, count);
}

static const LowerPass *named_pass(Context *context, const char *name) {
  const LowerPass *pass = lower_pass_find(name);
  if (!pass)
    diag_error(context, (SourcePos){0}, "unknown pass '%s'%s\n'pleat opt --list' prints the passes",
               name, lower_pass_suggestion(context, name));
  return pass;
}

bool lower_add_calls(Context *context, const PassCall *call, PassCalls *calls) {
  if (strcmp(call->name, "lower") != 0) {
    const LowerPass *pass = lower_pass_find(call->name);
    PassCall named = *call;
    if (pass) named.name = str_intern(context, pass->name);
    array_push(&context->arena, calls, named);
    return true;
  }
  for (const LowerPass *pass = lower_passes; pass->name; pass++)
    array_push(&context->arena, calls, ((PassCall){pass->name, NULL, call->pos}));
  PyNode *none[PY_MOST_ARGUMENTS];
  return pass_call_arguments(context, call, "", none);
}

static bool read_arguments(LowerState *state, const LowerPass *pass, const PassCall *call) {
  memset(state->args, 0, sizeof state->args);
  const char *signature = pass->signature ? pass->signature : "";
  return pass_call_arguments(state->context, call, signature, state->args);
}

PrimFunc *lower_run_calls(Context *context, PrimFunc *func, const PassCall *calls, int count,
                          const LowerOptions *options) {
  LowerState state = new_state(context, options);
  FactState facts = {.facts = lower_facts_of(func)};
  for (int i = 0; i < count && func; i++) {
    const LowerPass *pass = named_pass(context, calls[i].name);
    if (!pass || !read_arguments(&state, pass, &calls[i]) || !report_packed(context, pass, func) ||
        !report_needs(context, &facts, pass, func))
      return NULL;
    func = run_pass(&state, &facts, pass, func);
  }
  return func;
}

PrimFunc *lower_run_passes(Context *context, PrimFunc *func, const char *const *names, int count,
                           const LowerOptions *options) {
  PassCall *calls = arena_array(&context->arena, PassCall, count);
  for (int i = 0; i < count; i++) calls[i] = (PassCall){.name = str_intern(context, names[i])};
  return lower_run_calls(context, func, calls, count, options);
}
