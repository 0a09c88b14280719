// SPDX-License-Identifier: Apache-2.0
// Compiling a module's text. The passes are few: registers from allocas, common subexpressions,
// what is invariant out of loops, unrolling where the schedule asks for it. No pass vectorises or
// unrolls by its own judgement: the schedule has decided, and a second opinion spills its register
// tiles. Each compilation has an LLVM context of its own, so several may run at once.
#include "target/llvm/compile.h"

#include <pthread.h>

static const char passes[] =
    "function(sroa,early-cse<memssa>,simplifycfg,instcombine<no-verify-fixpoint>,loop-simplify,"
    "lcssa,loop-mssa(licm),loop-unroll<O2;no-runtime;no-partial;no-peeling;no-upperbound>,"
    "early-cse<memssa>,instcombine<no-verify-fixpoint>,loop-mssa(licm),simplifycfg),globaldce";

typedef struct Job {
  const LlvmApi *api;
  const HostMachine *machine;
  const char *text;
  LlvmOutput output;
  LLVMMemoryBufferRef code; // the result, except for text
  char *printed;            // the result as text
  LLVMContextRef context;
  LLVMModuleRef module;
  LLVMTargetMachineRef machine_ref;
  char message[512]; // empty: no error
} Job;

static void fail(Job *job, const char *what, const char *why) {
  if (!job->message[0]) snprintf(job->message, sizeof job->message, "%s: %s", what, why);
}

static void on_diagnostic(LLVMDiagnosticInfoRef info, void *arg) {
  Job *job = arg;
  if (job->api->GetDiagInfoSeverity(info) != LLVMDSError) return;
  char *text = job->api->GetDiagInfoDescription(info);
  fail(job, "LLVM", text);
  job->api->DisposeMessage(text);
}

static void parse(Job *job) {
  char *why = NULL;
  LLVMMemoryBufferRef buffer = job->api->CreateMemoryBufferWithMemoryRangeCopy(
      job->text, strlen(job->text), "unit");
  if (!job->api->ParseIRInContext(job->context, buffer, &job->module, &why)) return;
  fail(job, "LLVM cannot read what was written for it", why);
  job->api->DisposeMessage(why);
}

static void make_target_machine(Job *job) {
  const LlvmApi *api = job->api;
  static const char triple[] = "x86_64-unknown-linux-gnu";
  LLVMTargetRef target;
  char *why = NULL;
  if (api->GetTargetFromTriple(triple, &target, &why)) {
    fail(job, triple, why);
    api->DisposeMessage(why);
    return;
  }
  LLVMTargetMachineOptionsRef options = api->CreateTargetMachineOptions();
  api->TargetMachineOptionsSetCPU(options, "x86-64");
  api->TargetMachineOptionsSetFeatures(options, job->machine ? job->machine->features : "");
  api->TargetMachineOptionsSetCodeGenOptLevel(options, LLVMCodeGenLevelDefault);
  api->TargetMachineOptionsSetRelocMode(options, LLVMRelocPIC);
  job->machine_ref = api->CreateTargetMachineWithOptions(target, triple, options);
  api->DisposeTargetMachineOptions(options);
}

static void run_passes(Job *job) {
  const LlvmApi *api = job->api;
  LLVMPassBuilderOptionsRef options = api->CreatePassBuilderOptions();
  LLVMErrorRef error = api->RunPasses(job->module, passes, job->machine_ref, options);
  api->DisposePassBuilderOptions(options);
  if (!error) return;
  char *why = api->GetErrorMessage(error);
  fail(job, "LLVM's passes", why);
  api->DisposeErrorMessage(why);
}

static void write_text(Job *job) {
  job->printed = job->api->PrintModuleToString(job->module);
}

static void write_code(Job *job) {
  const LlvmApi *api = job->api;
  LLVMCodeGenFileType type =
      job->output == LLVM_OUTPUT_OBJECT ? LLVMObjectFile : LLVMAssemblyFile;
  char *why = NULL;
  if (!api->TargetMachineEmitToMemoryBuffer(job->machine_ref, job->module, type, &why, &job->code))
    return;
  fail(job, "LLVM's code generator", why);
  api->DisposeMessage(why);
}

static void compile(void *arg) {
  Job *job = arg;
  job->context = job->api->ContextCreate();
  job->api->ContextSetDiagnosticHandler(job->context, on_diagnostic, job);
  parse(job);
  if (!job->message[0]) make_target_machine(job);
  if (!job->message[0]) run_passes(job);
  if (job->message[0]) return;
  if (job->output == LLVM_OUTPUT_TEXT) write_text(job);
  else write_code(job);
}

static void clean_up(Job *job) {
  if (job->machine_ref) job->api->DisposeTargetMachine(job->machine_ref);
  if (job->module) job->api->DisposeModule(job->module);
  if (job->context) job->api->ContextDispose(job->context);
}

// After a fatal error LLVM's own state is unknown, and what it held is given up.
static void *run_job(void *arg) {
  Job *job = arg;
  char why[400];
  if (llvm_protect(compile, job, why, sizeof why)) clean_up(job);
  else fail(job, "LLVM", why);
  return NULL;
}

static void take_result(Job *job, Text *out) {
  if (job->code) {
    text_append(out, job->api->GetBufferStart(job->code), job->api->GetBufferSize(job->code));
    job->api->DisposeMemoryBuffer(job->code);
  }
  if (job->printed) {
    text_puts(out, job->printed);
    job->api->DisposeMessage(job->printed);
  }
}

// Each in a thread of its own but the first, which is the caller's.
static void run_jobs(Job *jobs, int count) {
  pthread_t threads[LLVM_MAX_PARTS];
  bool started[LLVM_MAX_PARTS] = {false};
  for (int i = 1; i < count; i++)
    started[i] = !pthread_create(&threads[i], NULL, run_job, &jobs[i]);
  for (int i = 0; i < count; i++)
    if (!started[i]) run_job(&jobs[i]);
  for (int i = 1; i < count; i++)
    if (started[i]) pthread_join(threads[i], NULL);
}

bool llvm_compile_parts(Context *context, const LlvmApi *api, const char *name,
                        const char *const *texts, int count, const TargetOptions *options,
                        LlvmOutput output, Text *outs) {
  Job jobs[LLVM_MAX_PARTS] = {{NULL}};
  bool done = true;
  for (int i = 0; i < count; i++)
    jobs[i] = (Job){
        .api = api, .machine = options->machine, .text = texts[i], .output = output};
  run_jobs(jobs, count);
  for (int i = 0; i < count; i++) {
    if (jobs[i].message[0])
      done = diag_error(context, (SourcePos){NULL}, "%s: %s", name, jobs[i].message);
    take_result(&jobs[i], &outs[i]);
  }
  return done;
}

bool llvm_compile(Context *context, const LlvmApi *api, const char *name, const char *text,
                  const TargetOptions *options, LlvmOutput output, Text *out) {
  return llvm_compile_parts(context, api, name, &text, 1, options, output, out);
}

static const struct {
  const char *ending;
  LlvmOutput output;
} outputs[] = {
    {".ll", LLVM_OUTPUT_TEXT}, {".s", LLVM_OUTPUT_ASSEMBLY}, {".o", LLVM_OUTPUT_OBJECT}};

LlvmOutput llvm_output_of(const char *ending) {
  for (int i = 0; i < COUNT_OF(outputs); i++)
    if (!strcmp(outputs[i].ending, ending)) return outputs[i].output;
  return LLVM_OUTPUT_OBJECT;
}

bool llvm_emit(Context *context, const TargetUnit *unit, const TargetOptions *options,
               const char *ending, Text *out) {
  const char *why;
  const LlvmApi *api = llvm_api(&why);
  if (!api) return diag_error(context, (SourcePos){NULL}, "target llvm: %s", why);
  const char *text = llvm_module_text(context, unit, options, NULL);
  return llvm_compile(context, api, unit->name, text, options, llvm_output_of(ending), out);
}
