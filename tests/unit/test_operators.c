// SPDX-License-Identifier: Apache-2.0
// Every row of the operator table, as the tensor program of its definition and as a planned graph
// of one node: compiled by every target for every level of the processor, its results must be those
// of the interpreter on the definition. An operator without a case fails.
//   PLEAT_OPERATOR=NAME    only that one, and everywhere; without it each case takes turns
#include "graph/call_program.h"
#include "operator_cases.h"
#include "target_check.h"

static const char *const all_types[] = {"float32", "float64", "float16", "bfloat16", "int32",
                                        "int64",   "int8",    "uint8",   "bool",     "int16",
                                        "uint16",  "uint32",  "uint64"};

static double loosest(const PrimFunc *func) {
  double result = 0;
  for (int i = 0; i < func->param_count; i++)
    result = MAX_OF(result, tolerance_of(func->buffers[i]->type));
  return result;
}

// ---- Cases of the families that have one form ---------------------------------------------------

static bool has_attr(const OpRow *row, const char *key) {
  return row->attrs && strstr(row->attrs, key);
}

// Divisors must not be 0; other inputs need no range.
static const char *divisor_range(const OpRow *row) {
  bool divides = strstr(row->name, "divide") || strstr(row->name, "mod");
  return divides ? "@1~8" : "";
}

// The condition of `where` is a tensor of bool.
static const char *first_type(const OpRow *row) {
  return row->result.code == TYPE_VOID && row->result.bits ? ":bool" : "";
}

static void elementwise_case(Context *context, const OpRow *row, int number, OperatorCase *out) {
  static const char *const shapes[][3] = {
      {"3x1x19", "3x1x19", "3x1x19"}, {"7x1x5", "3x1", "1x5"}, {"-", "-", "-"}};
  Text inputs = text_new(&context->arena);
  for (int i = 0; i < row->min_inputs; i++)
    text_printf(&inputs, "%s%s%s%s", i ? " " : "", shapes[number][i], i ? "" : first_type(row),
                i == 1 ? divisor_range(row) : "");
  *out = (OperatorCase){row->name, text_string(&inputs), "", 0};
}

static void reduction_case(const OpRow *row, int number, OperatorCase *out) {
  static const char *const attrs[] = {"axis=[1], keepdims=1", "axis=[0, -1]", ""};
  static const char *const single[] = {"axis=1, keepdims=1", "axis=-1", "axis=0"};
  static const char *const shapes[] = {"3x17x5", "7x2x13", "1x3"};
  const char *attr = has_attr(row, "select_last_index") ? single[number] : attrs[number];
  *out = (OperatorCase){row->name, shapes[number], attr, 0};
}

static const char *const cast_attrs[] = {
    "dtype=\"float32\"",         "dtype=\"int8\"",        "dtype=\"bool\"",
    "dtype=\"float16\"",         "dtype=\"bfloat16\"",    "dtype=\"float64\"",
    "dtype=\"float8_e4m3fnuz\"", "dtype=\"float4_e2m1\"", "dtype=\"int2\""};

// Case `number` of an operator; false after the last one.
static bool find_case(Context *context, const OpRow *row, int number, OperatorCase *out) {
  if (row->body) return number < 3 ? elementwise_case(context, row, number, out), true : false;
  if (has_attr(row, "keepdims") && !row->results)
    return number < 3 ? reduction_case(row, number, out), true : false;
  if (!strcmp(row->name, "astype")) {
    if (number >= COUNT_OF(cast_attrs)) return false;
    *out = (OperatorCase){row->name, "5x7@0~100", cast_attrs[number], 0};
    return true;
  }
  for (int i = 0; i < COUNT_OF(operator_cases); i++)
    if (!strcmp(operator_cases[i].op, row->name) && number-- == 0)
      return *out = operator_cases[i], true;
  return false;
}

// ---- As tensor programs -------------------------------------------------------------------------

enum { TURNS = 4 };
#ifdef __SANITIZE_ADDRESS__
enum { C_TURNS = 1 }; // most of their time is that of the C compiler
#else
enum { C_TURNS = TURNS };
#endif

typedef struct Turns {
  Context *context;
  TargetCases cases[TURNS];
  int next;
} Turns;

// ---- The definition as a program that a graph calls ---------------------------------------------

static bool see_opaque_axis(Visitor *visitor, Stmt *s) {
  for (int i = 0; s->kind == STMT_BLOCK && i < s->as.block->var_count; i++)
    *(bool *)visitor->env |= s->as.block->vars[i].kind == ITER_OPAQUE;
  return true;
}

static bool is_ordered(const PrimFunc *func) {
  bool found = false;
  Visitor visitor = {.env = &found, .enter_stmt = see_opaque_axis};
  visit_stmt(&visitor, func->body);
  return found;
}

// The stages that are read off the loops of the definition compute what the definition computes.
static void check_as_program(const Definition *d, const InterpCompare *compare) {
  Context *context = d->context;
  const Node *call = d->graph->nodes.items[0];
  int inputs = d->func->param_count - call->output_count;
  const char *why = NULL;
  Te *te = te_new(context);
  for (int i = 0; i < inputs; i++) {
    const Buffer *like = d->func->buffers[i];
    te_input(te, like->name, like->type, like->shape, like->rank);
  }
  bool read = program_read_stages(te, d->func, te->inputs.items, inputs, &why);
  if (!read && !is_ordered(d->func)) fail_msg("%s: %s", d->text, why);
  if (!read) return;
  InterpDifference difference;
  PrimFunc *again = te_prim_func(te, "again");
  if (interp_compare(context, d->func, again, compare, &difference)) return;
  diag_print_all(context, stderr);
  fail_msg("%s: the stages that are read off its loops compute other values", d->text);
}

static void add_definition(Turns *turns, const Definition *d, bool everywhere) {
  Context *context = turns->context;
  TargetCase one = {.func = d->func, .what = d->text};
  one.lowered = lower_prim_func(context, d->func, NULL);
  if (!one.lowered) {
    diag_print_all(context, stderr);
    fail_msg("%s", d->text);
  }
  one.compare = (InterpCompare){
      .seed = (uint64_t)turns->next, .fill = INTERP_FILL_EIGHTHS, .rtol = d->rtol, .atol = d->rtol};
  one.compare.ranges = arena_copy(&context->arena, d->ranges, sizeof d->ranges);
  for (int i = 0; i < TURNS; i++)
    if (everywhere || turns->next % TURNS == i) array_push(&context->arena, &turns->cases[i], one);
  turns->next++;
  check_as_program(d, &one.compare);
}

// The element types that the definition accepts.
static int add_case(Turns *turns, const OperatorCase *c, bool everywhere) {
  int taken = 0;
  for (int t = 0; t < COUNT_OF(all_types); t++) {
    Definition d = {.context = turns->context};
    bool fits = define(&d, c, all_types[t]);
    turns->context->diags.count = turns->context->error_count = 0;
    if (!fits) continue;
    taken++;
    d.rtol = loosest(d.func);
    if (everywhere || t < 5 || (turns->next + t) % 3 == 0) add_definition(turns, &d, everywhere);
  }
  return taken;
}

// Operators whose inputs must be constants have tests in Python (test_relax_operators.py).
static bool needs_constants(const OpRow *row) {
  return !strcmp(row->name, "dynamic_strided_slice");
}

static void test_definitions(void **state) {
  (void)state;
  const char *only = getenv("PLEAT_OPERATOR");
  Turns turns = {.context = context_new()};
  int failures = 0;
  for (int i = 0; i < op_count(); i++) {
    const OpRow *row = op_at(i);
    if (only && strcmp(only, row->name) != 0) continue;
    OperatorCase c;
    int number = 0;
    for (; find_case(turns.context, row, number, &c); number++)
      if (!add_case(&turns, &c, only != NULL)) {
        fprintf(stderr, "%s(%s, %s) takes no type\n", c.op, c.inputs, c.attrs);
        failures++;
      }
    if (!number && !needs_constants(row)) {
      fprintf(stderr, "%s has no case: add one to operator_cases.h\n", row->name);
      failures++;
    }
  }
  for (int i = 0; i < TURNS; i++) {
    failures += target_check(turns.context, &turns.cases[i], (TargetPlaces){"llvm", 1u << i});
    if (i < C_TURNS)
      failures +=
          target_check(turns.context, &turns.cases[i], (TargetPlaces){"c", 1u << (i + 1) % TURNS});
  }
  context_free(turns.context);
  assert_int_equal(failures, 0);
}

int main(void) {
  setenv("CFLAGS", "-O0", 0); // for the C target: this tests its code, not the compiler
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_definitions)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
