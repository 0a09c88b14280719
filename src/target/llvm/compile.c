// SPDX-License-Identifier: Apache-2.0
// Compiling a module's text. The passes are few: registers from allocas, common subexpressions,
// what is invariant out of loops, unrolling where the schedule asks for it. No pass vectorises or
// unrolls by its own judgement: the schedule has decided, and a second opinion spills its register
// tiles. Each compilation has an LLVM context of its own, so several may run at once.
#include "target/llvm/compile.h"

static const char passes[] =
    "function(sroa,early-cse<memssa>,simplifycfg,instcombine<no-verify-fixpoint>,loop-simplify,"
    "lcssa,loop-mssa(licm),loop-unroll<O2;no-runtime;no-partial;no-peeling;no-upperbound>,"
    "early-cse<memssa>,instcombine<no-verify-fixpoint>,loop-mssa(licm),simplifycfg),globaldce";

typedef struct Job {
  const LlvmApi *api;
  const HostMachine *machine;
  const char *text;
  LlvmOutput output;
  Text *out;
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
  char *text = job->api->PrintModuleToString(job->module);
  text_puts(job->out, text);
  job->api->DisposeMessage(text);
}

static void write_code(Job *job) {
  const LlvmApi *api = job->api;
  LLVMCodeGenFileType type =
      job->output == LLVM_OUTPUT_OBJECT ? LLVMObjectFile : LLVMAssemblyFile;
  LLVMMemoryBufferRef buffer;
  char *why = NULL;
  if (api->TargetMachineEmitToMemoryBuffer(job->machine_ref, job->module, type, &why, &buffer)) {
    fail(job, "LLVM's code generator", why);
    api->DisposeMessage(why);
    return;
  }
  text_append(job->out, api->GetBufferStart(buffer), api->GetBufferSize(buffer));
  api->DisposeMemoryBuffer(buffer);
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
bool llvm_compile(Context *context, const LlvmApi *api, const char *name, const char *text,
                  const TargetOptions *options, LlvmOutput output, Text *out) {
  Job job = {.api = api, .machine = options->machine, .output = output, .out = out};
  char why[400];
  job.text = text;
  if (!llvm_protect(compile, &job, why, sizeof why)) fail(&job, "LLVM", why);
  else clean_up(&job);
  if (!job.message[0]) return true;
  return diag_error(context, (SourcePos){NULL}, "%s: %s", name, job.message);
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
