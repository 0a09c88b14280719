// SPDX-License-Identifier: Apache-2.0
// Compiles the text of a module, at once or in threads (the crew), which free their copy of the
// text when it is compiled. Few passes run, each once: registers from allocas, common
// subexpressions, loop-invariant code motion, and unrolling of loops with symbolic extents. No pass
// vectorises or unrolls by its own judgement, since the schedule has decided, and another decision
// would spill its register tiles. Each compilation has an LLVM context of its own, so several may
// run at the same time.
#include "target/llvm/compile.h"

#include "base/digest.h"

#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>

static const char quick_passes[] = "function(sroa,early-cse),globaldce";
static const char passes[] =
    "function(sroa,early-cse,instcombine<no-verify-fixpoint>,loop-simplify,lcssa,loop-mssa(licm),"
    "loop-unroll<O2;no-runtime;no-partial;no-peeling;no-upperbound>,simplifycfg),globaldce";

typedef struct Job {
  const LlvmApi *api;
  const char *features; // the processor's, from the row's level_flags
  bool quick;
  const char *text;
  LlvmOutput output;
  LLVMMemoryBufferRef code; // the result, unless it is text
  char *printed;            // the result as text
  LLVMContextRef context;
  LLVMModuleRef module;
  LLVMTargetMachineRef machine_ref;
  char message[512]; // empty without an error
} Job;

static const char *features_of(const TargetOptions *options) {
  return target_level_flags(target_find("llvm"), options->machine);
}

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
  LLVMMemoryBufferRef buffer =
      job->api->CreateMemoryBufferWithMemoryRangeCopy(job->text, strlen(job->text), "unit");
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
  api->TargetMachineOptionsSetFeatures(options, job->features);
  api->TargetMachineOptionsSetCodeGenOptLevel(options, job->quick ? LLVMCodeGenLevelNone
                                                                  : LLVMCodeGenLevelDefault);
  api->TargetMachineOptionsSetRelocMode(options, LLVMRelocPIC);
  job->machine_ref = api->CreateTargetMachineWithOptions(target, triple, options);
  api->DisposeTargetMachineOptions(options);
}

static void run_passes(Job *job) {
  const LlvmApi *api = job->api;
  LLVMPassBuilderOptionsRef options = api->CreatePassBuilderOptions();
  LLVMErrorRef error =
      api->RunPasses(job->module, job->quick ? quick_passes : passes, job->machine_ref, options);
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
  LLVMCodeGenFileType type = job->output == LLVM_OUTPUT_OBJECT ? LLVMObjectFile : LLVMAssemblyFile;
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
  if (job->output == LLVM_OUTPUT_TEXT)
    write_text(job);
  else
    write_code(job);
}

static void clean_up(Job *job) {
  if (job->machine_ref) job->api->DisposeTargetMachine(job->machine_ref);
  if (job->module) job->api->DisposeModule(job->module);
  if (job->context) job->api->ContextDispose(job->context);
}

// After a fatal error LLVM's own state is unknown, and the memory that it held is lost.
static void *run_job(void *arg) {
  Job *job = arg;
  char why[400];
  if (llvm_protect(compile, job, why, sizeof why))
    clean_up(job);
  else
    fail(job, "LLVM", why);
  return NULL;
}

static void drop_result(Job *job) {
  if (job->code) job->api->DisposeMemoryBuffer(job->code);
  if (job->printed) job->api->DisposeMessage(job->printed);
  job->code = NULL;
  job->printed = NULL;
}

static void add_code(Context *context, const Job *job, bool annotate, Text *out) {
  const char *code = job->api->GetBufferStart(job->code);
  if (annotate && job->output == LLVM_OUTPUT_ASSEMBLY)
    llvm_comment_accesses(&context->scratch, code, out);
  else
    text_append(out, code, job->api->GetBufferSize(job->code));
}

bool llvm_compile(Context *context, const LlvmApi *api, const char *name, const char *text,
                  const TargetOptions *options, LlvmOutput output, Text *out) {
  Job job = {.api = api,
             .features = features_of(options),
             .quick = options->quick,
             .text = text,
             .output = output};
  run_job(&job);
  if (job.code) add_code(context, &job, options->annotate, out);
  if (job.printed) text_puts(out, job.printed);
  drop_result(&job);
  return !job.message[0] || diag_error(context, (SourcePos){NULL}, "%s: %s", name, job.message);
}

// ---- Crews

typedef struct CrewJob CrewJob;
struct CrewJob {
  Job job;
  char *text;
  Str label, key; // in the cache
  CacheEntry kept;
  bool is_kept; // the object is in `kept`, and no thread has to compile it
  CrewJob *next;
};

struct LlvmCrew {
  const LlvmApi *api;
  const char *features;
  bool quick;
  Cache *cache; // NULL: none is used
  pthread_mutex_t lock;
  pthread_cond_t changed;
  pthread_t threads[LLVM_MAX_THREADS];
  int thread_count, limit;
  CrewJob *first, **last, *next; // in order; `next` is the first that no thread has looked at
  int waiting;                   // jobs to compile that no thread has taken
  bool closed;
};

static void run_crew_job(LlvmCrew *crew, CrewJob *own) {
  const LlvmApi *api = crew->api;
  if (own->text)
    run_job(&own->job);
  else
    fail(&own->job, "LLVM", "not enough memory");
  free(own->text);
  own->text = NULL;
  if (own->key && own->job.code)
    cache_put(crew->cache, CACHE_KERNEL, own->key, own->label, api->GetBufferStart(own->job.code),
              api->GetBufferSize(own->job.code));
}

static CrewJob *next_to_compile(LlvmCrew *crew) {
  while (crew->next && crew->next->is_kept) crew->next = crew->next->next;
  return crew->next;
}

static CrewJob *take_job(LlvmCrew *crew) {
  pthread_mutex_lock(&crew->lock);
  while (!next_to_compile(crew) && !crew->closed) pthread_cond_wait(&crew->changed, &crew->lock);
  CrewJob *own = crew->next;
  if (own) {
    crew->next = own->next;
    crew->waiting--;
  }
  pthread_cond_broadcast(&crew->changed);
  pthread_mutex_unlock(&crew->lock);
  return own;
}

static void *work(void *arg) {
  for (CrewJob *own; (own = take_job(arg));) run_crew_job(arg, own);
  return NULL;
}

static void close_crew(LlvmCrew *crew) {
  pthread_mutex_lock(&crew->lock);
  crew->closed = true;
  pthread_cond_broadcast(&crew->changed);
  pthread_mutex_unlock(&crew->lock);
  for (int i = 0; i < crew->thread_count; i++) pthread_join(crew->threads[i], NULL);
  crew->thread_count = 0;
}

// Called also after a compilation that was stopped half-way.
static void release_crew(void *arg) {
  LlvmCrew *crew = arg;
  close_crew(crew);
  for (CrewJob *own = crew->first; own; own = own->next) {
    drop_result(&own->job);
    cache_entry_free(&own->kept);
    free(own->text);
    own->text = NULL;
  }
}

LlvmCrew *llvm_crew_new(Context *context, const LlvmApi *api, const TargetOptions *options) {
  LlvmCrew *crew = arena_new(&context->lasting, LlvmCrew);
  *crew = (LlvmCrew){.api = api,
                     .features = features_of(options),
                     .quick = options->quick,
                     .cache = options->cache};
  crew->last = &crew->first;
  crew->limit = options->machine ? MIN_OF(options->machine->cores, LLVM_MAX_THREADS) : 1;
  pthread_mutex_init(&crew->lock, NULL);
  pthread_cond_init(&crew->changed, NULL);
  context_at_free(context, release_crew, crew);
  return crew;
}

static void hand_over(LlvmCrew *crew, CrewJob *own) {
  pthread_mutex_lock(&crew->lock);
  while (!own->is_kept && crew->waiting >= crew->limit)
    pthread_cond_wait(&crew->changed, &crew->lock);
  *crew->last = own;
  crew->last = &own->next;
  if (!crew->next) crew->next = own;
  crew->waiting += !own->is_kept;
  if (!own->is_kept) pthread_cond_broadcast(&crew->changed);
  pthread_mutex_unlock(&crew->lock);
}

// States everything on which the object of a text depends. NULL when LLVM cannot be told from
// another build of it.
static Str key_of(Context *context, const LlvmCrew *crew, const char *text) {
  char llvm[CACHE_IDENTITY_SIZE], digest[DIGEST_TEXT_SIZE];
  if (!cache_identity((const void *)crew->api->ContextCreate, llvm)) return NULL;
  size_t size = strlen(text);
  digest_print(digest_of(text, size), digest);
  return str_format(
      context, "object of a kernel\npleat %s\nllvm %s\nfeatures %s\n%s\ntext %s %zu\n",
      cache_own_identity(), llvm, crew->features, crew->quick ? "quick" : "best", digest, size);
}

void llvm_crew_add(Context *context, LlvmCrew *crew, const char *label, const char *text) {
  CrewJob *own = arena_new(&context->lasting, CrewJob);
  own->label = str_intern(context, label);
  own->key = crew->cache ? key_of(context, crew, text) : NULL;
  own->is_kept = own->key && cache_get(crew->cache, CACHE_KERNEL, own->key, &own->kept);
  if (!own->is_kept) own->text = strdup(text);
  own->job = (Job){.api = crew->api,
                   .features = crew->features,
                   .quick = crew->quick,
                   .text = own->text,
                   .output = LLVM_OUTPUT_OBJECT};
  hand_over(crew, own);
  if (own->is_kept) return;
  if (crew->thread_count < crew->limit &&
      !pthread_create(&crew->threads[crew->thread_count], NULL, work, crew))
    crew->thread_count++;
  if (!crew->thread_count && (own = take_job(crew))) run_crew_job(crew, own);
}

static bool use_object(const CrewJob *own, LlvmObject use, void *env) {
  const LlvmApi *api = own->job.api;
  LLVMMemoryBufferRef code = own->job.code;
  if (own->is_kept) return use(env, own->kept.data, own->kept.size);
  return !code || use(env, api->GetBufferStart(code), api->GetBufferSize(code));
}

bool llvm_crew_finish(Context *context, LlvmCrew *crew, const char *name, LlvmObject use,
                      void *env) {
  bool done = true;
  close_crew(crew);
  for (CrewJob *own = crew->first; own; own = own->next) {
    if (own->job.message[0])
      done = diag_error(context, (SourcePos){NULL}, "%s: %s", name, own->job.message);
    done = use_object(own, use, env) && done;
  }
  release_crew(crew);
  if (crew->cache) cache_trim(crew->cache);
  malloc_trim(0);
  llvm_forget_pages();
  return done;
}

static const struct {
  const char *ending;
  LlvmOutput output;
} outputs[] = {{".ll", LLVM_OUTPUT_TEXT}, {".s", LLVM_OUTPUT_ASSEMBLY}, {".o", LLVM_OUTPUT_OBJECT}};

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
  LlvmOutput output = llvm_output_of(ending);
  const char *text = llvm_module_text(context, unit, options, NULL, output);
  return llvm_compile(context, api, unit->name, text, options, output, out);
}
