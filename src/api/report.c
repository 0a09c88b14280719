// SPDX-License-Identifier: Apache-2.0
// Implements the functions of pleat/pleat.h that plan a model, or write it as a file, without
// making it ready to run.
#include "report/report.h"

#include <stdlib.h>

#include "api/load.h"
#include "api/messages.h"
#include "api/result.h"

// ---- Reports ------------------------------------------------------------------------------------

typedef struct PlanCall {
  RequestCall call;
  const char *tensor; // NULL: the whole plan
  Arena results;      // memory of the structs
  char *json;         // the results
  PleatPlan *plan;
  PleatTensorPlan *tensor_plan;
  bool done;
} PlanCall;

static bool no_such_tensor(PlanCall *call, const PlanReport *report) {
  Context *context = call->call.context;
  const StageGraph *stages = report->plan->stages;
  const char **names = arena_array(&context->arena, const char *, stages->tensors.count);
  for (int i = 0; i < stages->tensors.count; i++)
    names[i] = plan_tensor_name(stages->tensors.items[i]);
  const char *nearest = suggestion_of(&context->arena, call->tensor, names, stages->tensors.count);
  return field_error(context, "tensor", "the plan has no tensor '%s'%s", call->tensor, nearest);
}

static bool take_plan(PlanCall *call, PlanReport *report) {
  call->json = report_text(plan_report_json(&report->data));
  report->data.json = arena_text(&call->results, call->json);
  report->data.text = plan_text(report, &call->results);
  call->plan = result_new(&call->results, &report->data, sizeof report->data);
  return call->json != NULL;
}

static bool take_tensor(PlanCall *call, const PlanReport *report) {
  const StageTensor *tensor = plan_report_tensor(report, call->tensor);
  if (!tensor) return no_such_tensor(call, report);
  PleatTensorPlan data = tensor_report_new(report, tensor, &call->results).data;
  call->json = report_text(tensor_report_json(&data));
  data.json = arena_text(&call->results, call->json);
  call->tensor_plan = result_new(&call->results, &data, sizeof data);
  return call->json != NULL;
}

static void plan(void *arg) {
  PlanCall *call = arg;
  Context *context = call->call.context;
  arena_init(&call->results, context);
  call->call.asked = call->tensor;
  call->call.runs_nothing = true;
  if (!request_load(&call->call)) return;
  if (!call->call.graph) {
    field_error(context, "func", "is a tensor program, which has no plan");
    return;
  }
  Program *program = program_plan(context, call->call.graph, &call->call.options);
  if (!program) return;
  PlanReport report = plan_report_new(program, &call->results);
  call->done = call->tensor ? take_tensor(call, &report) : take_plan(call, &report);
}

// Plans; finish_plan frees the results that the caller does not take.
static int run_plan(PlanCall *call, PleatMessages **messages) {
  int status = request_run(&call->call, plan, &call->done, messages);
  arena_free(&call->results);
  return status;
}

static void finish_plan(PlanCall *call) {
  free(call->json);
  result_free(call->plan);
  result_free(call->tensor_plan);
}

static int plan_json(const PleatRequest *request, const char *tensor, char **json,
                     PleatMessages **messages) {
  if (!json) return messages_refuse("json", "is NULL, expected where to store it", messages);
  PlanCall call = {.call = {.given = request}, .tensor = tensor};
  int status = run_plan(&call, messages);
  *json = status == PLEAT_OK ? call.json : NULL;
  if (*json) call.json = NULL;
  finish_plan(&call);
  return status;
}

int pleat_plan_new(const PleatRequest *request, PleatPlan **result, PleatMessages **messages) {
  if (!result) return messages_refuse("plan", "is NULL, expected where to store it", messages);
  PlanCall call = {.call = {.given = request}};
  int status = run_plan(&call, messages);
  *result = status == PLEAT_OK ? call.plan : NULL;
  if (*result) call.plan = NULL;
  finish_plan(&call);
  return status;
}

void pleat_plan_free(PleatPlan *plan) {
  result_free(plan);
}

int pleat_tensor_plan_new(const PleatRequest *request, const char *tensor, PleatTensorPlan **result,
                          PleatMessages **messages) {
  if (!result) return messages_refuse("plan", "is NULL, expected where to store it", messages);
  *result = NULL;
  if (!tensor) return messages_refuse("tensor", "is NULL, expected the name of one", messages);
  PlanCall call = {.call = {.given = request}, .tensor = tensor};
  int status = run_plan(&call, messages);
  *result = status == PLEAT_OK ? call.tensor_plan : NULL;
  if (*result) call.tensor_plan = NULL;
  finish_plan(&call);
  return status;
}

void pleat_tensor_plan_free(PleatTensorPlan *plan) {
  result_free(plan);
}

int pleat_plan(const PleatRequest *request, char **json, PleatMessages **messages) {
  return plan_json(request, NULL, json, messages);
}

int pleat_plan_tensor(const PleatRequest *request, const char *tensor, char **json,
                      PleatMessages **messages) {
  if (json) *json = NULL;
  if (!tensor) return messages_refuse("tensor", "is NULL, expected the name of one", messages);
  return plan_json(request, tensor, json, messages);
}

// ---- Files --------------------------------------------------------------------------------------

typedef struct WriteCall {
  RequestCall call;
  const PleatWriteOptions *given;
  const char *path;
  bool done;
} WriteCall;

static bool read_options(const WriteCall *call, EmitOptions *emit) {
  PleatWriteOptions options = {0};
  if (call->given &&
      !struct_read(call->call.context, "PleatWriteOptions", call->given, &options, sizeof options))
    return false;
  *emit = (EmitOptions){.target = options.target,
                        .weights = options.weights,
                        .openmp = options.openmp != 0,
                        .lowered = options.lowered != 0,
                        .annotate = options.annotate != 0};
  return emit_check(call->call.context, EMIT_PROGRAM, emit, call->path);
}

static const TargetRow *device_of(const TargetRow *row) {
  return row && target_is_device(row) ? row : NULL;
}

// A file for a device has a plan for it: for the one that the call names, or the request, or whose
// files end so.
static const char *device_of_file(const WriteCall *call, const EmitOptions *emit) {
  const char *asked = call->call.request.target;
  const TargetRow *row = device_of(emit->target ? target_find(emit->target)
                                   : asked      ? target_find(asked)
                                                : NULL);
  if (!row && !emit->target) row = device_of(target_for_file(call->path));
  return row ? row->name : NULL;
}

static bool use_device(WriteCall *call, EmitOptions *emit) {
  const char *device = device_of_file(call, emit);
  call->call.device = device;
  if (!device || text_ends_with(call->path, ".py")) return true;
  emit->target = device;
  return emit_check(call->call.context, EMIT_PROGRAM, emit, call->path);
}

static void write_files(void *arg) {
  WriteCall *call = arg;
  RequestCall *request = &call->call;
  Context *context = request->context;
  EmitOptions emit;
  request->all_kernels = request->runs_nothing = true;
  if (!request_begin(request) || !read_options(call, &emit) || !use_device(call, &emit) ||
      !file_can_write(context, call->path) || !request_load(request))
    return;
  if (!request->graph) {
    call->done =
        emit_kernels(context, &request->kernels, &emit, &request->options, NULL, call->path);
    return;
  }
  Program *program = program_build(context, request->graph, &request->options);
  if (program) request_progress(request, "code", 0, 1);
  call->done = program && emit_program(program, &emit, call->path);
}

int pleat_write(const PleatRequest *request, const PleatWriteOptions *options, const char *path,
                PleatMessages **messages) {
  if (!path) return messages_refuse("path", "is NULL, expected the name of a file", messages);
  WriteCall call = {.call = {.given = request}, .given = options, .path = path};
  return request_run(&call.call, write_files, &call.done, messages);
}
