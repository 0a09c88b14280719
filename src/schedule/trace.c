// SPDX-License-Identifier: Apache-2.0
// Prints the trace as text: one line for each step, in Python's syntax. Blocks are called b0, b1,
// …, loops l0, l1, …, and sampled integers v0, v1, …, in the order in which steps return them.
#include "schedule/internal.h"
#include "script/script.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

typedef struct TracePrinter {
  Context *context;
  Text *out;
  Map names; // handle to its name
  int blocks, loops;
} TracePrinter;

// A sampled integer is called v0, v1, … by the number of its choice.
static const char *result_name(TracePrinter *printer, const StepValue *value) {
  if (value->kind == VALUE_INT) return str_format(printer->context, "v%d", value->sample - 1);
  bool block = value->kind == VALUE_BLOCK;
  Str name = block ? str_format(printer->context, "b%d", printer->blocks++)
                   : str_format(printer->context, "l%d", printer->loops++);
  map_put(&printer->names, block ? (const void *)value->as.block : value->as.loop, name);
  return name;
}

static void print_float(Text *out, double f) {
  if (!isfinite(f)) {
    text_printf(out, "float(\"%s\")", isnan(f) ? "nan" : f < 0 ? "-inf" : "inf");
    return;
  }
  char digits[40];
  for (int precision = 1; precision <= 17; precision++) {
    snprintf(digits, sizeof digits, "%.*g", precision, f);
    if (strtod(digits, NULL) == f) break;
  }
  text_puts(out, digits);
  if (!strpbrk(digits, ".e")) text_puts(out, ".0");
}

static void print_string(Text *out, const char *s) {
  text_puts(out, "\"");
  for (; *s; s++) {
    if (*s == '"' || *s == '\\') text_puts(out, "\\");
    if (*s == '\n')
      text_puts(out, "\\n");
    else
      text_append(out, s, 1);
  }
  text_puts(out, "\"");
}

static void print_value(TracePrinter *printer, const StepValue *value);

static void print_items(TracePrinter *printer, const StepValue *list) {
  for (int i = 0; i < list->as.list.count; i++) {
    if (i) text_puts(printer->out, ", ");
    print_value(printer, &list->as.list.items[i]);
  }
}

static bool is_input(const IndexMap *map, const char *name, size_t size) {
  for (int i = 0; i < map->input_count + map->replica_count; i++)
    if (strlen(map->inputs[i]) == size && !memcmp(map->inputs[i], name, size)) return true;
  return false;
}

// True when the results of a lambda have names other than those of its parameters: sizes,
// functions, AXIS_SEPARATOR.
static bool has_names(const IndexMap *map, const char *lambda) {
  const char *at = strchr(lambda, ':');
  while (at && *at) {
    size_t size = strspn(at, "_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");
    if (size && !isdigit((unsigned char)*at) && !is_input(map, at, size)) return true;
    at += size ? size : 1;
  }
  return false;
}

// A lambda, or the map's text in quotes where a lambda would need names that Python does not have.
static void print_map(TracePrinter *printer, const IndexMap *map) {
  const char *lambda = index_map_lambda(printer->context, map);
  if (has_names(map, lambda))
    print_string(printer->out, index_map_text(printer->context, map));
  else
    text_puts(printer->out, lambda);
}

static void print_value(TracePrinter *printer, const StepValue *value) {
  Text *out = printer->out;
  const char *name;
  switch (value->kind) {
  case VALUE_NONE: text_puts(out, "None"); break;
  case VALUE_BLOCK:
    name = map_find(&printer->names, value->as.block);
    text_puts(out, name ? name : "None");
    break;
  case VALUE_LOOP:
    name = map_find(&printer->names, value->as.loop);
    text_puts(out, name ? name : "None");
    break;
  case VALUE_INT:
    if (value->sample)
      text_puts(out, result_name(printer, value));
    else
      text_printf(out, "%lld", (long long)value->as.i);
    break;
  case VALUE_FLOAT: print_float(out, value->as.f); break;
  case VALUE_BOOL: text_puts(out, value->as.i ? "True" : "False"); break;
  case VALUE_STRING: print_string(out, value->as.s); break;
  case VALUE_FUNCTION:
    text_puts(out, script_expr_text(printer->context, value->as.function));
    break;
  case VALUE_MAP: print_map(printer, value->as.map); break;
  case VALUE_DICT:
    text_puts(out, "{");
    for (int i = 0; i < value->as.list.count; i++) {
      text_puts(out, !i ? "" : i % 2 ? ": " : ", ");
      print_value(printer, &value->as.list.items[i]);
    }
    text_puts(out, "}");
    break;
  case VALUE_LIST:
    text_puts(out, "[");
    print_items(printer, value);
    text_puts(out, "]");
    break;
  }
}

static void print_slot(TracePrinter *printer, const StepValue *value) {
  if (value->kind != VALUE_LIST) {
    print_value(printer, value);
    return;
  }
  text_puts(printer->out, "(");
  print_items(printer, value);
  text_puts(printer->out, ")");
}

static void print_arguments(TracePrinter *printer, const StepCall *call) {
  const char *comma = "";
  for (int i = 0; i < STEP_MAX_PARAMS && call->info->params[i].name; i++) {
    const StepParam *param = &call->info->params[i];
    const StepValue *value = &call->args[i];
    if (param->optional && value->kind == VALUE_NONE) continue;
    text_puts(printer->out, comma);
    comma = ", ";
    if (param->keyword) text_printf(printer->out, "%s=", param->name);
    if (param->name[0] == '*')
      print_items(printer, value);
    else if (param->kind == PARAM_SLOT)
      print_slot(printer, value);
    else
      print_value(printer, value);
  }
}

static void print_call(TracePrinter *printer, Text *out, const StepCall *call) {
  // Arguments are printed first, because a result may take the name of a handle that is an
  // argument.
  Text arguments = text_new(&printer->context->arena);
  printer->out = &arguments;
  print_arguments(printer, call);
  for (int k = 0; k < call->results.count; k++)
    text_printf(out, "%s%s", k ? ", " : "", result_name(printer, &call->results.items[k]));
  // A single result is unpacked from its list: `l0, = …`.
  if (call->results.count)
    text_printf(out, "%s = ", result_is_list(call->info) && call->results.count == 1 ? "," : "");
  text_printf(out, "sch.%s(%s)\n", call->info->name, text_string(&arguments));
}

static void print_by_axis(TracePrinter *printer, Text *out, const Schedule *schedule, FormRun *run,
                          const StepCall *call) {
  StepCallArray steps = {0};
  const char *why;
  bool found = layout_as_axis_steps(schedule, run, call, &steps, &why);
  if (!found) form_run_step(run, call);
  if (!found) text_printf(out, "# The next step is not written axis by axis: %s.\n", why);
  if (!found) print_call(printer, out, call);
  for (int i = 0; found && i < steps.count; i++) print_call(printer, out, &steps.items[i]);
}

static const char *last_step(TracePrinter *printer, Text *out, const Schedule *schedule) {
  if (schedule->last.info) print_call(printer, out, &schedule->last);
  return text_string(out);
}

const char *schedule_trace_as(const Schedule *schedule, TraceForm form) {
  Context *context = schedule->context;
  Text out = text_new(&context->arena);
  TracePrinter printer = {context, &out, map_new(&context->arena), 0, 0};
  if (form == TRACE_LAST_STEP) return last_step(&printer, &out, schedule);
  FormRun made = {0};
  int count = schedule->trace.count;
  for (int i = 0, run; i < count; i += run) {
    const StepCall *call = &schedule->trace.items[i];
    StepCall map;
    run = form == TRACE_BY_MAP ? axis_steps_as_layout(schedule, &made, call, count - i, &map) : 0;
    bool by_axis =
        form == TRACE_BY_AXIS && call->relaid && call->info == &step_table[STEP_transform_layout];
    if (by_axis)
      print_by_axis(&printer, &out, schedule, &made, call);
    else
      print_call(&printer, &out, run ? &map : call);
    if (!by_axis && !run) form_run_step(&made, call);
    run = MAX_OF(run, 1);
  }
  return text_string(&out);
}

const char *schedule_trace(const Schedule *schedule) {
  return schedule_trace_as(schedule, TRACE_AS_MADE);
}

const char *schedule_last_result(const Schedule *schedule, int i) {
  const StepCall *last = &schedule->last;
  if (i < 0 || i >= last->results.count) return NULL;
  const StepValue *value = &last->results.items[i];
  if (value->kind == VALUE_INT)
    return str_format(schedule->context, "%lld", (long long)value->as.i);
  if (value->kind == VALUE_BLOCK) return value->as.block;
  if (loop_is_place(value->as.loop)) return expr_is_int(value->as.loop, -1) ? "root" : "inline";
  return value->as.loop->as.var->name;
}

int schedule_step_count(const Schedule *schedule) {
  return schedule->trace.count;
}
