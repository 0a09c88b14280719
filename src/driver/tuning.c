// SPDX-License-Identifier: Apache-2.0
// Reads and writes tuning records. A file is Python text with programs, which are read like any
// TVMScript, and records, whose bodies are schedule steps:
//   file   ::= (import | program | record)*
//   record ::= "@tuning.record" "(" which ("," "last" "=" STRING)? ("," "cycles" "=" NUMBER)? ")"
//              "def" NAME "(" NAME ")" ":" steps
//   which  ::= STRING | NAME
// A string names the first operator of the kernel, and `last` the last one; a name is that of a
// program in the file, and the record is for all kernels that are equal to it. The layouts are
// those that the steps give the parameters by transform_layout.
#include "driver/tuning.h"

#include "script/script.h"

typedef struct Reading {
  Context *context;
  const SourceFile *file;
  const Module *programs; // NULL: there are none
  Tuning *tuning;
} Reading;

// ---- Reading

static bool has_decorator(const PyNode *node, const char *name) {
  const PyNode *list = node->kind == PY_DEF ? node->items[0] : NULL;
  for (int i = 0; list && i < list->count; i++) {
    const PyNode *decorator = list->items[i];
    if (decorator->kind == PY_CALL) decorator = decorator->items[0];
    bool named = decorator->kind == PY_NAME || decorator->kind == PY_ATTRIBUTE;
    if (named && !strcmp(decorator->text, name)) return true;
  }
  return false;
}

static bool refuse(const Reading *r, const PyNode *node, const char *text) {
  return diag_error(r->context, node->pos, "%s", text);
}

static bool read_cycles(const Reading *r, const PyNode *node, double *cycles) {
  *cycles = -1;
  if (!node) return true;
  if (node->kind != PY_INT && node->kind != PY_FLOAT)
    return refuse(r, node, "expected a number of cycles");
  *cycles = node->kind == PY_INT ? (double)node->i : node->f;
  return *cycles <= 1e15 || refuse(r, node, "expected at most 1e15 cycles");
}

static bool read_last(const Reading *r, const PyNode *node, TuningRecord *record) {
  if (!node) return true;
  if (node->kind != PY_STRING)
    return refuse(r, node, "expected the name of an operator as a string");
  if (record->program)
    return refuse(r, node, "a program is a whole kernel; last= is for records by a name");
  record->last = node->text;
  return true;
}

// Makes the schedule of a record's program, so that a step that is refused is reported even where
// no kernel is equal to the program.
static bool schedule_program(const Reading *r, const PyNode *name, TuningRecord *record) {
  const ModuleFunc *func = r->programs ? module_find(r->programs, name->text) : NULL;
  if (!func || !func->prim)
    return diag_error(r->context, name->pos,
                      "the file has no program '%s'; the name of an operator is a string",
                      name->text);
  record->program = tuning_program(r->context, func->prim);
  record->hash = prim_func_hash(r->context, record->program);
  record->schedule = schedule_new(r->context, func->prim);
  return schedule_replay_suite(record->schedule, record->steps);
}

static bool read_record(const Reading *r, const PyNode *def) {
  PyNode *arguments[3];
  const PyNode *list = def->items[0], *call = list->items[0];
  TuningRecord record = {.steps = def->items[3], .pos = call->pos};
  if (list->count != 1 || call->kind != PY_CALL)
    return refuse(r, call,
                  "expected @tuning.record(\"operator\") or @tuning.record(program) alone");
  if (def->items[1]->count != 1)
    return refuse(r, def, "a record takes one argument, the schedule: def name(sch)");
  if (!py_arguments(r->context, call, "kernel last? cycles?", arguments, NULL)) return false;
  if (arguments[0]->kind == PY_STRING)
    record.first = arguments[0]->text;
  else if (arguments[0]->kind != PY_NAME)
    return refuse(r, arguments[0], "expected the name of an operator as a string, or a program");
  else if (!schedule_program(r, arguments[0], &record))
    return false;
  if (!read_last(r, arguments[1], &record) || !read_cycles(r, arguments[2], &record.cycles))
    return false;
  array_push(&r->context->arena, r->tuning, record);
  return true;
}

static bool read_item(const Reading *r, const PyNode *node) {
  bool is_text = node->kind == PY_EXPRESSION && node->items[0]->kind == PY_STRING;
  if (has_decorator(node, "record")) return read_record(r, node);
  if (is_text || node->kind == PY_IMPORT || has_decorator(node, "prim_func")) return true;
  return refuse(r, node,
                "a file of tuning records has programs, marked @T.prim_func, and records, "
                "marked @tuning.record");
}

static bool read_programs(Reading *r, const PyNode *suite) {
  for (int i = 0; i < suite->count; i++)
    if (has_decorator(suite->items[i], "prim_func"))
      return (r->programs = script_parse(r->context, r->file)) != NULL;
  return true;
}

static bool read_suite(Reading *r, const PyNode *suite) {
  if (!read_programs(r, suite)) return false;
  for (int i = 0; i < suite->count; i++)
    if (!read_item(r, suite->items[i])) return false;
  return r->tuning->count || refuse(r, suite, "the file has no record, marked @tuning.record");
}

const Tuning *tuning_read(Context *context, const char *path) {
  size_t size;
  int errors = context->error_count;
  char *text = file_read(context, &context->arena, path, &size);
  if (!text) return NULL;
  Reading r = {context, source_file_new(context, path, text, size), NULL,
               arena_new(&context->arena, Tuning)};
  DiagCode code = diag_code_set(context, DIAG_SYNTAX);
  PyNode *suite = py_parse_file(context, &context->arena, r.file, PY_STATEMENTS);
  bool ok = suite && context->error_count == errors;
  diag_code_set(context, DIAG_OPTION);
  ok = ok && read_suite(&r, suite);
  diag_code_set(context, code);
  return ok ? r.tuning : NULL;
}

// ---- Writing

static bool is_recorded(const PlanKernel *kernel) {
  return kernel->stage_count && !kernel->call && kernel->same_as < 0 &&
         !kernel->stages[0]->te->program;
}

static void write_layouts(const Plan *plan, const PlanKernel *kernel, Text *out) {
  for (int i = 0; i < kernel->params.count; i++) {
    const StageTensor *tensor = kernel->params.items[i];
    const char *before = !i ? "" : i == kernel->params.count - 1 ? " -> " : ", ";
    text_printf(out, "%s%s %s", before, plan_tensor_name(tensor),
                plan_layout_name(plan->context, tensor, kernel->choice.layouts[i]));
  }
}

// Writes each line of the text with the indentation of a body.
static void write_steps(const char *steps, Text *out) {
  while (*steps) {
    size_t length = strcspn(steps, "\n");
    text_printf(out, "    %.*s\n", (int)length, steps);
    steps += length + (steps[length] == '\n');
  }
}

// The mean of the cycles of all kernels that run the code of this one.
static double mean_cycles(const Plan *plan, int number, const double *cycles) {
  double sum = cycles[number];
  int count = 1;
  for (int i = number + 1; i < plan->kernels.count; i++) {
    const PlanKernel *kernel = plan->kernels.items[i];
    if (kernel->same_as != number) continue;
    sum += cycles[i];
    count++;
  }
  return sum / count;
}

static void write_record(const Plan *plan, int number, const double *cycles, Text *out) {
  Context *context = plan->context;
  const PlanKernel *kernel = plan->kernels.items[number];
  PrimFunc *program =
      prim_func_copy(context, tuning_program(context, plan_kernel_func(plan, number)));
  Module *module = module_new(context, "");
  program->name = str_format(context, "program_%d", number + 1);
  module_add_prim(module, program);
  text_printf(out, "\n# kernel %d '%s': ", number + 1, kernel->name);
  write_layouts(plan, kernel, out);
  text_puts(out, "\n");
  script_print_module(context, module, out, &(ScriptOptions){.no_imports = true});
  text_printf(out, "\n@tuning.record(%s", program->name);
  if (cycles) text_printf(out, ", cycles=%.0f", mean_cycles(plan, number, cycles));
  text_printf(out, ")\ndef schedule_%d(sch):\n", number + 1);
  const char *steps = schedule_trace(kernel->choice.schedule);
  write_steps(*steps ? steps : "pass\n", out);
}

void tuning_write(const Plan *plan, const char *model, const double *cycles, Text *out) {
  text_printf(
      out,
      "# Schedules of the kernels of %s, with the layouts that they give their parameters,\n"
      "# for 'pleat plan --tuning FILE' and other subcommands. %s\n"
      "# that the planner may also choose other layouts.\n"
      "from pleat.script import tir as T\n",
      model, cycles ? "They state measured cycles, so" : "State cycles=, as measured, so");
  for (int i = 0; i < plan->kernels.count; i++)
    if (is_recorded(plan->kernels.items[i])) write_record(plan, i, cycles, out);
}
