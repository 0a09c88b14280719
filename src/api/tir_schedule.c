// SPDX-License-Identifier: Apache-2.0
// Implements the schedules of pleat/tir.h.
#include "api/tir.h"

#include <jansson.h>
#include <stdlib.h>

#include "schedule/schedule.h"
#include "script/script.h"

struct PleatSchedule {
  PleatModule *module; // of the program before the first step
  const PrimFunc *func;
  Schedule *schedule; // in the store of the module
};

typedef struct StepsCall {
  ModuleCall call;
  PleatSchedule *schedule;
  const char *function, *steps, *file;
  int first_line;
  TraceForm form;
  char *trace;
} StepsCall;

// ---- Schedules ----------------------------------------------------------------------------------

static void begin(void *arg) {
  StepsCall *call = arg;
  Context *context = call->call.context;
  PrimFunc *func = module_prim(context, call->call.on->module, call->function);
  if (!func) return;
  call->schedule->func = func;
  call->schedule->schedule = schedule_new(context, func);
  schedule_use_module(call->schedule->schedule, call->call.on->module);
  call->call.done = true;
}

int pleat_schedule_new(const PleatModule *module, const char *function, PleatSchedule **schedule,
                       PleatMessages **messages) {
  if (!schedule)
    return messages_refuse("schedule", "is NULL, expected where to store it", messages);
  *schedule = NULL;
  if (!module) return module_refuse_null(messages);
  PleatSchedule *made = calloc(1, sizeof *made);
  if (made) made->module = module_keep(module);
  if (!made || !made->module) {
    free(made);
    return messages_no_memory(messages);
  }
  StepsCall call = {.call = {.on = module, .body = begin}, .schedule = made, .function = function};
  int status = module_call_run(&call, NULL, messages);
  if (status == PLEAT_OK)
    *schedule = made;
  else
    pleat_schedule_free(made);
  return status;
}

static void copy_steps(void *arg) {
  StepsCall *call = arg;
  call->schedule->schedule = schedule_copy(call->schedule->schedule);
  call->call.done = true;
}

static int refuse_null(PleatMessages **messages) {
  return messages_refuse("schedule", "is NULL, expected a schedule", messages);
}

int pleat_schedule_copy(const PleatSchedule *schedule, PleatSchedule **copy,
                        PleatMessages **messages) {
  if (!copy) return messages_refuse("copy", "is NULL, expected where to store it", messages);
  *copy = NULL;
  if (!schedule) return refuse_null(messages);
  PleatSchedule *made = malloc(sizeof *made);
  if (!made) return messages_no_memory(messages);
  *made = *schedule;
  made->module = module_keep(schedule->module);
  if (!made->module) {
    free(made);
    return messages_no_memory(messages);
  }
  StepsCall call = {.call = {.on = made->module, .body = copy_steps}, .schedule = made};
  int status = module_call_run(&call, NULL, messages);
  if (status == PLEAT_OK)
    *copy = made;
  else
    pleat_schedule_free(made);
  return status;
}

void pleat_schedule_free(PleatSchedule *schedule) {
  if (!schedule) return;
  pleat_module_free(schedule->module);
  free(schedule);
}

// ---- Steps --------------------------------------------------------------------------------------

static void apply(void *arg) {
  StepsCall *call = arg;
  Context *context = call->call.context;
  if (!call->steps) {
    field_error(context, "steps", "is NULL, expected schedule steps");
    return;
  }
  SourceFile *file = source_file_copy(context, call->file ? call->file : "steps", call->steps,
                                      strlen(call->steps));
  file->lines_before = call->first_line > 0 ? call->first_line - 1 : 0;
  call->call.done =
      schedule_replay(call->schedule->schedule, file) &&
      verify_prim_func(context, schedule_func(call->schedule->schedule), IR_LEVEL_TENSOR);
}

int pleat_schedule_apply(PleatSchedule *schedule, const char *steps, const char *file,
                         int first_line, PleatMessages **messages) {
  if (!schedule) return refuse_null(messages);
  StepsCall call = {.call = {.on = schedule->module, .body = apply},
                    .schedule = schedule,
                    .steps = steps,
                    .file = file,
                    .first_line = first_line};
  return module_call_run(&call, NULL, messages);
}

static void add_intrinsic(void *arg) {
  StepsCall *call = arg;
  Context *context = call->call.context;
  if (!call->function || !call->steps) {
    field_error(context, call->function ? "functions" : "name", "is NULL, expected text");
    return;
  }
  const Module *module = script_parse(
      context, source_file_copy(context, "intrinsic", call->steps, strlen(call->steps)));
  const ModuleFunc *desc = module ? module_find(module, "desc") : NULL;
  const ModuleFunc *impl = module ? module_find(module, "impl") : NULL;
  if (module && (!desc || !desc->prim || !impl || !impl->prim))
    field_error(context, "functions", "has no tensor programs called desc and impl");
  else if (module)
    call->call.done =
        schedule_add_intrinsic(call->schedule->schedule, call->function, desc->prim, impl->prim);
}

int pleat_schedule_intrinsic(PleatSchedule *schedule, const char *name, const char *functions,
                             PleatMessages **messages) {
  if (!schedule) return refuse_null(messages);
  StepsCall call = {.call = {.on = schedule->module, .body = add_intrinsic},
                    .schedule = schedule,
                    .function = name,
                    .steps = functions};
  return module_call_run(&call, NULL, messages);
}

void pleat_schedule_seed(PleatSchedule *schedule, uint64_t seed) {
  if (schedule) schedule_seed(schedule->schedule, seed);
}

const char *pleat_schedule_result(const PleatSchedule *schedule, int i) {
  return schedule ? schedule_last_result(schedule->schedule, i) : NULL;
}

const char *pleat_schedule_signature(int step, int part) {
  return step_signature(step, part);
}

// ---- Results ------------------------------------------------------------------------------------

static void take_module(void *arg) {
  StepsCall *call = arg;
  const PleatSchedule *s = call->schedule;
  call->call.result =
      module_with_prim(call->call.context, s->module->module, s->func, schedule_func(s->schedule));
  call->call.done = true;
}

int pleat_schedule_module(const PleatSchedule *schedule, PleatModule **result,
                          PleatMessages **messages) {
  if (result) *result = NULL;
  if (!schedule) return refuse_null(messages);
  StepsCall call = {.call = {.on = schedule->module, .body = take_module},
                    .schedule = (PleatSchedule *)schedule};
  return module_call_transform(&call, result, messages);
}

static void take_trace(void *arg) {
  StepsCall *call = arg;
  Text text = text_new(&call->call.context->scratch);
  text_puts(&text, schedule_trace_as(call->schedule->schedule, call->form));
  call->trace = module_owned_text(call->call.context, &text);
  call->call.done = call->trace != NULL;
}

int pleat_schedule_trace_as(const PleatSchedule *schedule, const char *form, char **trace,
                            PleatMessages **messages) {
  static const char *const names[] = {"made", "axes", "maps", "last"};
  if (!trace) return messages_refuse("trace", "is NULL, expected where to store it", messages);
  *trace = NULL;
  if (!schedule) return refuse_null(messages);
  int number = 0;
  while (form && number < COUNT_OF(names) && strcmp(form, names[number]) != 0) number++;
  if (!form || number == COUNT_OF(names))
    return messages_refuse("form", "is not \"made\", \"axes\", \"maps\" or \"last\"", messages);
  StepsCall call = {.call = {.on = schedule->module, .body = take_trace},
                    .schedule = (PleatSchedule *)schedule,
                    .form = (TraceForm)number};
  int status = module_call_run(&call, NULL, messages);
  *trace = call.trace;
  return status;
}

int pleat_schedule_trace(const PleatSchedule *schedule, char **trace, PleatMessages **messages) {
  return pleat_schedule_trace_as(schedule, "made", trace, messages);
}

static json_t *number_or_null(bool known, int64_t number) {
  return known ? json_integer(number) : json_null();
}

// Two elements that are not neighbours, with their places in memory: a number, or an expression.
static json_t *jump_of(const AccessCost *cost) {
  if (!cost->jump[0]) return json_null();
  json_t *list = json_array();
  for (int i = 0; i < 2; i++) {
    char *end;
    long long place = strtoll(cost->jump_place[i], &end, 10);
    json_t *number = *end ? json_string(cost->jump_place[i]) : json_integer(place);
    json_array_append_new(list, json_pack("[s, o]", cost->jump[i], number));
  }
  return list;
}

static void take_accesses(void *arg) {
  StepsCall *call = arg;
  AccessCostArray costs = schedule_access_costs(call->schedule->schedule);
  json_t *list = json_array();
  for (int i = 0; i < costs.count; i++) {
    const AccessCost *cost = &costs.items[i];
    json_array_append_new(
        list, json_pack("{s:s, s:s, s:s, s:s?, s:o, s:o, s:o, s:o}", "block", cost->block, "buffer",
                        cost->buffer, "element", cost->element, "loop", cost->loop, "stride",
                        number_or_null(cost->has_stride, cost->stride), "lines",
                        number_or_null(cost->lines > 0, cost->lines), "width",
                        number_or_null(cost->width > 0, cost->width), "jump", jump_of(cost)));
  }
  call->trace = json_dumps(list, 0);
  json_decref(list);
  call->call.done =
      call->trace != NULL || diag_error_as(call->call.context, DIAG_MEMORY, (SourcePos){0},
                                           "not enough memory for the text");
}

int pleat_schedule_accesses(const PleatSchedule *schedule, char **json, PleatMessages **messages) {
  if (!json) return messages_refuse("json", "is NULL, expected where to store it", messages);
  *json = NULL;
  if (!schedule) return refuse_null(messages);
  StepsCall call = {.call = {.on = schedule->module, .body = take_accesses},
                    .schedule = (PleatSchedule *)schedule};
  int status = module_call_run(&call, NULL, messages);
  *json = call.trace;
  return status;
}

// ---- All steps at once --------------------------------------------------------------------------

// True after a call that succeeded, whose warnings are dropped for the messages of the next one.
static bool may_go_on(int status, PleatMessages **messages) {
  if (status != PLEAT_OK) return false;
  if (messages) {
    pleat_messages_free(*messages);
    *messages = NULL;
  }
  return true;
}

int pleat_module_schedule(const PleatModule *module, const char *function, const char *steps,
                          const char *file, PleatModule **result, char **trace,
                          PleatMessages **messages) {
  if (trace) *trace = NULL;
  if (!result) return messages_refuse("result", "is NULL, expected where to store it", messages);
  *result = NULL;
  PleatSchedule *schedule;
  int status = pleat_schedule_new(module, function, &schedule, messages);
  if (may_go_on(status, messages))
    status = pleat_schedule_apply(schedule, steps, file, 0, messages);
  if (trace && may_go_on(status, messages))
    status = pleat_schedule_trace(schedule, trace, messages);
  if (may_go_on(status, messages)) status = pleat_schedule_module(schedule, result, messages);
  if (status != PLEAT_OK && trace) {
    pleat_free(*trace);
    *trace = NULL;
  }
  pleat_schedule_free(schedule);
  return status;
}
