// SPDX-License-Identifier: Apache-2.0
// Declares oneDNN's C interface. The library is loaded at run time, so building Pleat does not need
// it. oneDNN's second and third generations describe operations differently: in the second, the
// caller allocates a description, which is an opaque block of sufficient size here.
#ifndef PLEAT_OFFLOAD_DNNL_LIBRARY_H
#define PLEAT_OFFLOAD_DNNL_LIBRARY_H

#include "base/base.h"
#include "base/machine.h"

// Values of oneDNN's enumerations, which both generations share.
enum {
  DNNL_CPU = 1,
  DNNL_F32 = 3,
  DNNL_TAG_ANY = 1,
  DNNL_FORWARD_INFERENCE = 96,
  DNNL_CONVOLUTION_AUTO = 3,
  DNNL_QUERY_SRC = 129,
  DNNL_QUERY_WEIGHTS = 131,
  DNNL_QUERY_DST = 133,
  DNNL_ARG_SRC = 1,
  DNNL_ARG_DST = 17,
  DNNL_ARG_WEIGHTS = 33,
  DNNL_ARG_BIAS = 41,
  DNNL_ARG_SCRATCHPAD = 80,
  DNNL_ARG_POST_OP = 16384, // times the number of the post-op, from 1; plus DNNL_ARG_SRC_1
  DNNL_ARG_SRC_1 = 2,
  DNNL_QUERY_SCRATCHPAD = 136,
  DNNL_ELTWISE_RELU = 0x1f,
  DNNL_BINARY_ADD = 0x1fff0,
  DNNL_SCRATCHPAD_USER = 1,
  DNNL_BLOCKED = 2,
  DNNL_STREAM_DEFAULT = 1,
  DNNL_DIMS = 12,
  DESCRIPTION_BYTES = 16384, // enough for any description of the second generation
};
#define DNNL_ALLOCATE ((void *)(size_t)-1)

typedef int64_t DnnlDims[DNNL_DIMS];
typedef struct DnnlArg {
  int number;
  void *memory;
} DnnlArg;

// The library's functions that are used; those with `generation` 0 exist in every generation.
typedef struct DnnlLibrary {
  void *handle;
  int generation; // 2 or 3
  const char *name;
  const int *(*version)(void);
  int (*engine_create)(void **engine, int kind, size_t index);
  int (*stream_create)(void **stream, void *engine, unsigned flags);
  int (*stream_wait)(void *stream);
  int (*memory_create)(void **memory, const void *desc, void *engine, void *handle);
  int (*desc_equal)(const void *a, const void *b);
  const void *(*query_desc)(const void *primitive_desc, int what, int index);
  int (*reorder)(void **primitive_desc, const void *from, void *from_engine, const void *to,
                 void *to_engine, const void *attributes);
  int (*primitive_create)(void **primitive, const void *primitive_desc);
  int (*execute)(const void *primitive, void *stream, int count, const DnnlArg *args);
  int (*init_strides)(void *desc, int rank, const int64_t *dims, int type, const int64_t *strides);
  int (*init_tag)(void *desc, int rank, const int64_t *dims, int type, int tag);
  int (*init_matmul)(void *op, const void *src, const void *weights, const void *bias,
                     const void *dst);
  int (*init_conv)(void *op, int kind, int algorithm, const void *src, const void *weights,
                   const void *bias, const void *dst, const int64_t *strides,
                   const int64_t *dilates, const int64_t *before, const int64_t *after);
  int (*create_desc)(void **primitive_desc, const void *op, const void *attributes, void *engine,
                     const void *hint);
  int (*new_strides)(void **desc, int rank, const int64_t *dims, int type, const int64_t *strides);
  int (*new_tag)(void **desc, int rank, const int64_t *dims, int type, int tag);
  int (*new_matmul)(void **primitive_desc, void *engine, const void *src, const void *weights,
                    const void *bias, const void *dst, const void *attributes);
  int (*new_conv)(void **primitive_desc, void *engine, int kind, int algorithm, const void *src,
                  const void *weights, const void *bias, const void *dst, const int64_t *strides,
                  const int64_t *dilates, const int64_t *before, const int64_t *after,
                  const void *attributes);
  int (*attr_create)(void **attributes);
  int (*attr_destroy)(void *attributes);
  int (*attr_scratchpad)(void *attributes, int mode);
  int (*attr_post_ops)(void *attributes, const void *post_ops);
  int (*post_ops_create)(void **post_ops);
  int (*post_ops_destroy)(void *post_ops);
  int (*post_ops_eltwise)(void *post_ops, float scale, int kind, float alpha, float beta);
  int (*post_ops_binary)(void *post_ops, int kind, const void *desc);
  int (*primitive_desc_destroy)(void *primitive_desc);
  int (*primitive_destroy)(void *primitive);
  int (*memory_destroy)(void *memory);
  int (*stream_destroy)(void *stream);
  size_t (*desc_size)(const void *desc);
} DnnlLibrary;

// Loads oneDNN for a number of threads and for the instructions of the machine. False with a
// diagnostic that begins with `option`, which asks for it.
bool dnnl_load(Context *context, const char *option, const HostMachine *machine, int threads,
               DnnlLibrary *library);

#endif
