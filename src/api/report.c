// SPDX-License-Identifier: Apache-2.0
// Implements the functions of pleat/pleat.h that plan a model, or write it as a file, without
// making it ready to run.
#include "report/report.h"

#include <stdlib.h>

#include "api/load.h"
#include "api/messages.h"

// ---- Reports ------------------------------------------------------------------------------------

typedef struct PlanCall {
  RequestCall call;
  const char *tensor; // NULL: the whole plan
  char *json;         // the result
  bool done;
} PlanCall;

static json_t *tensor_report(PlanCall *call, const PlanReport *report) {
  const StageTensor *tensor = plan_report_tensor(report, call->tensor);
  if (tensor) return plan_tensor_json(report, tensor);
  Context *context = call->call.context;
  const StageGraph *stages = report->plan->stages;
  const char **names = arena_array(&context->arena, const char *, stages->tensors.count);
  for (int i = 0; i < stages->tensors.count; i++)
    names[i] = plan_tensor_name(stages->tensors.items[i]);
  const char *nearest = nearest_name(call->tensor, names, stages->tensors.count);
  field_error(context, "tensor", "the plan has no tensor '%s'%s%s%s", call->tensor,
              nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
  return NULL;
}

static void plan(void *arg) {
  PlanCall *call = arg;
  if (!request_load(&call->call)) return;
  Context *context = call->call.context;
  if (!call->call.graph) {
    field_error(context, "func", "is a tensor program, which has no plan");
    return;
  }
  Program *program = program_plan(context, call->call.graph, &call->call.options);
  if (!program) return;
  PlanReport report = plan_report_new(program);
  json_t *object = call->tensor ? tensor_report(call, &report) : plan_report_json(&report);
  call->json = object ? report_text(object) : NULL;
  call->done = call->json != NULL;
}

static int run_plan(const PleatRequest *request, const char *tensor, char **json,
                    PleatMessages **messages) {
  if (!json) return messages_refuse("json", "is NULL, expected where to store it", messages);
  PlanCall call = {.call = {.given = request}, .tensor = tensor};
  int status = request_run(&call.call, plan, &call.done, messages);
  if (status != PLEAT_OK) {
    free(call.json);
    call.json = NULL;
  }
  *json = call.json;
  return status;
}

int pleat_plan(const PleatRequest *request, char **json, PleatMessages **messages) {
  return run_plan(request, NULL, json, messages);
}

int pleat_plan_tensor(const PleatRequest *request, const char *tensor, char **json,
                      PleatMessages **messages) {
  if (json) *json = NULL;
  if (!tensor) return messages_refuse("tensor", "is NULL, expected the name of one", messages);
  return run_plan(request, tensor, json, messages);
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
                        .lowered = options.lowered != 0};
  return emit_check(call->call.context, emit, call->path);
}

static void write_files(void *arg) {
  WriteCall *call = arg;
  RequestCall *request = &call->call;
  Context *context = request->context;
  EmitOptions emit;
  request->all_kernels = true;
  if (!read_options(call, &emit) || !file_can_write(context, call->path) || !request_load(request))
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
