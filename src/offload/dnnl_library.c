// SPDX-License-Identifier: Apache-2.0
// Loads oneDNN and finds its functions.
#include "offload/dnnl_library.h"

#include <dlfcn.h>
#include <stdlib.h>

static const struct {
  const char *name;
  int generation;
  size_t offset;
} functions[] = {
    {"dnnl_version", 0, offsetof(DnnlLibrary, version)},
    {"dnnl_engine_create", 0, offsetof(DnnlLibrary, engine_create)},
    {"dnnl_stream_create", 0, offsetof(DnnlLibrary, stream_create)},
    {"dnnl_stream_wait", 0, offsetof(DnnlLibrary, stream_wait)},
    {"dnnl_memory_create", 0, offsetof(DnnlLibrary, memory_create)},
    {"dnnl_memory_desc_equal", 0, offsetof(DnnlLibrary, desc_equal)},
    {"dnnl_primitive_desc_query_md", 0, offsetof(DnnlLibrary, query_desc)},
    {"dnnl_reorder_primitive_desc_create", 0, offsetof(DnnlLibrary, reorder)},
    {"dnnl_primitive_create", 0, offsetof(DnnlLibrary, primitive_create)},
    {"dnnl_primitive_execute", 0, offsetof(DnnlLibrary, execute)},
    {"dnnl_primitive_attr_create", 2, offsetof(DnnlLibrary, attr_create)},
    {"dnnl_primitive_attr_destroy", 2, offsetof(DnnlLibrary, attr_destroy)},
    {"dnnl_primitive_attr_set_scratchpad_mode", 2, offsetof(DnnlLibrary, attr_scratchpad)},
    {"dnnl_primitive_attr_set_post_ops", 2, offsetof(DnnlLibrary, attr_post_ops)},
    {"dnnl_post_ops_create", 2, offsetof(DnnlLibrary, post_ops_create)},
    {"dnnl_post_ops_destroy", 2, offsetof(DnnlLibrary, post_ops_destroy)},
    {"dnnl_post_ops_append_eltwise", 2, offsetof(DnnlLibrary, post_ops_eltwise)},
    {"dnnl_post_ops_append_binary", 2, offsetof(DnnlLibrary, post_ops_binary)},
    {"dnnl_primitive_desc_destroy", 2, offsetof(DnnlLibrary, primitive_desc_destroy)},
    {"dnnl_primitive_destroy", 2, offsetof(DnnlLibrary, primitive_destroy)},
    {"dnnl_memory_destroy", 2, offsetof(DnnlLibrary, memory_destroy)},
    {"dnnl_stream_destroy", 2, offsetof(DnnlLibrary, stream_destroy)},
    {"dnnl_memory_desc_get_size", 2, offsetof(DnnlLibrary, desc_size)},
    {"dnnl_memory_desc_init_by_strides", 2, offsetof(DnnlLibrary, init_strides)},
    {"dnnl_memory_desc_init_by_tag", 2, offsetof(DnnlLibrary, init_tag)},
    {"dnnl_matmul_desc_init", 2, offsetof(DnnlLibrary, init_matmul)},
    {"dnnl_dilated_convolution_forward_desc_init", 2, offsetof(DnnlLibrary, init_conv)},
    {"dnnl_primitive_desc_create", 2, offsetof(DnnlLibrary, create_desc)},
    {"dnnl_memory_desc_create_with_strides", 3, offsetof(DnnlLibrary, new_strides)},
    {"dnnl_memory_desc_create_with_tag", 3, offsetof(DnnlLibrary, new_tag)},
    {"dnnl_matmul_primitive_desc_create", 3, offsetof(DnnlLibrary, new_matmul)},
    {"dnnl_convolution_forward_primitive_desc_create", 3, offsetof(DnnlLibrary, new_conv)},
};

static bool find_functions(Context *context, const char *option, DnnlLibrary *library) {
  for (int i = 0; i < COUNT_OF(functions); i++) {
    if (functions[i].generation && functions[i].generation != library->generation) continue;
    void *found = dlsym(library->handle, functions[i].name);
    if (!found)
      return diag_error_as(context, DIAG_OPTION, (SourcePos){0}, "%s: the library has no %s",
                           option, functions[i].name);
    memcpy((char *)library + functions[i].offset, &found, sizeof found);
  }
  return true;
}

// Sets variables that OpenMP reads when the library loads it. OpenMP's threads are to sleep between
// loops, because they share cores with the threads of the compared program.
static void set_environment(const HostMachine *machine, int thread_count) {
  char threads[16];
  snprintf(threads, sizeof threads, "%d", thread_count);
  setenv("OMP_NUM_THREADS", threads, 1);
  setenv("OMP_WAIT_POLICY", "passive", 0);
  if (machine->level < CPU_AVX512)
    setenv("ONEDNN_MAX_CPU_ISA", machine->level == CPU_AVX2 ? "AVX2" : "SSE41", 1);
}

bool dnnl_load(Context *context, const char *option, const HostMachine *machine, int threads,
               DnnlLibrary *library) {
  static const char *const files[] = {"libdnnl.so.3", "libdnnl.so.2", "libdnnl.so"};
  *library = (DnnlLibrary){0};
  set_environment(machine, threads);
  for (int i = 0; !library->handle && i < COUNT_OF(files); i++)
    library->handle = dlopen(files[i], RTLD_NOW | RTLD_LOCAL);
  if (!library->handle)
    return diag_error_as(context, DIAG_OPTION, (SourcePos){0},
                         "%s: oneDNN is not installed (no libdnnl.so.3 or .2 is found)\n"
                         "on Debian: apt-get install libdnnl-dev",
                         option);
  library->generation = dlsym(library->handle, "dnnl_matmul_primitive_desc_create") ? 3 : 2;
  if (!find_functions(context, option, library)) return false;
  const int *version = library->version();
  library->name = arena_printf(&context->arena, "oneDNN %d.%d", version[0], version[1]);
  return true;
}
