/* SPDX-License-Identifier: Apache-2.0
 *
 * Pleat's library: the part that is stable.
 *
 * Link with libpleat. Every pointer is marked: *owned* is yours and goes back to pleat_free (a
 * model to pleat_model_free), *borrowed* belongs to somebody else and is only read. No function
 * keeps what it is given. All may be called by several threads at once; runs of one model wait for
 * each other.
 *
 * Programs in C that want the layout algebra alone link libpleat_layout and include its own header,
 * layout/layout.h, whose functions and types they then use directly.
 */
#ifndef PLEAT_H
#define PLEAT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version that this header belongs to: major * 10000 + minor * 100 + patch. */
#define PLEAT_VERSION_NUMBER 100

/* The version of the library that runs. The same major as PLEAT_VERSION_NUMBER, and at least it,
 * means that everything declared here is there. */
int pleat_version_number(void);
/* Borrowed, for ever: "0.1.0". */
const char *pleat_version_text(void);

/* Gives back what was owned. NULL is no mistake. */
void pleat_free(void *owned);

/* ---- Layouts ---------------------------------------------------------------------------------
 *
 * A question is a JSON object:
 *
 *   {"op": "inverse", "a": {"layout": "NCHW16c", "shape": [1, 30, 7, 7]}}
 *
 * with "op", the layout or layouts it is about ("a", "b"), and what else that question takes; a
 * layout is an object of a spelling and optionally "shape" (integers or names; without it what the
 * spelling says, or a name for each axis), "physical" (its physical extents), "where" (conditions
 * on the names, such as "C % 16 == 0"), "order" (of the logical axes of a named spelling) and
 * "padding". The reply is an object with "answer", and, where
 * there are such, "witness", "reason", "level", "ns" and further fields; or with "error", which has
 * "message", "field", "column" and "text". `pleat layout --help-batch` lists the questions and
 * their fields.
 *
 * With `certificates` not 0, an answer that is proved comes with "certificate": text that
 * `pleat-check` judges without trusting what made it.
 *
 * Owned text, never NULL but when memory is exhausted. */
char *pleat_layout_query(const char *request, int certificates);

/* Where each element lies: offsets in elements, row-major over the physical axes, in the row-major
 * order of the logical index (with the copies of an element that has several side by side).
 * `layout` is an object as above. `count` is the number of offsets that `offsets` has room for.
 * Returns how many there are, and writes them when they fit; -1 when the layout is refused, is
 * symbolic, or has an element without a place: then *error, if not NULL, gets owned text. */
int64_t pleat_layout_offsets(const char *layout, int64_t *offsets, int64_t count, char **error);

/* ---- Models ----------------------------------------------------------------------------------
 *
 * An ONNX model is compiled for this machine, and then run any number of times:
 *
 *   PleatRequest request = {.size = sizeof request, .path = "resnet50.onnx"};
 *   PleatModel *model;
 *   char *messages;
 *   if (pleat_model_compile(&request, &model, &messages) != PLEAT_OK) {
 *     fputs(messages, stderr);
 *     pleat_free(messages);
 *     return 1;
 *   }
 *   PleatTensor input = {.data = image, .device_type = 1, .rank = 4, .type = {2, 32, 1},
 *                        .shape = (int64_t[]){1, 3, 224, 224}};
 *   PleatTensor output = {.data = logits, .device_type = 1, .rank = 2, .type = {2, 32, 1},
 *                         .shape = (int64_t[]){1, 1000}};
 *   int status = pleat_model_run(model, &input, 1, &output, 1, &messages);
 */

/* What became of a call. */
enum {
  PLEAT_OK = 0,
  PLEAT_REFUSED = 1,   /* the model, a request or an argument cannot be taken: see the messages */
  PLEAT_FAULT = 2,     /* a fault of the library's own; the messages say where */
  PLEAT_NO_MEMORY = 3, /* memory ran out */
};

/* DLPack's DLDataType: code 0 is a signed integer, 1 unsigned, 2 float, 4 bfloat16, 6 bool,
 * 10 float8_e4m3fn, 12 float8_e5m2; lanes is 1. Elements narrower than a byte take a byte. */
typedef struct PleatElement {
  uint8_t code, bits;
  uint16_t lanes;
} PleatElement;

/* DLPack's DLTensor, field for field: a pointer to one can be cast to the other. */
typedef struct PleatTensor {
  void *data;
  int32_t device_type, device_id; /* 1, 0: this processor's memory, the only one taken */
  int32_t rank;                   /* axes; 0 is a scalar */
  PleatElement type;
  int64_t *shape;       /* `rank` extents */
  int64_t *strides;     /* in elements; NULL: rows in order without gaps, all that a run takes */
  uint64_t byte_offset; /* of the first element from `data` */
} PleatTensor;

/* A tensor with a name. */
typedef struct PleatNamedTensor {
  const char *name;
  const PleatTensor *tensor;
} PleatNamedTensor;

/* What is compiled, and how. Borrowed during the call. Zeros ask for what is usual. */
typedef struct PleatRequest {
  size_t size; /* sizeof(PleatRequest), as the caller's header has it: later fields are zeros */
  /* The file; or, with `bytes`, the model's name in messages: its external data lie in the same
   * folder. */
  const char *path;
  const void *bytes; /* the file's contents, where they are in memory already; NULL: read `path` */
  size_t byte_count;
  /* "x=1x3x224x224" is the shape of an input, "batch=4" the size of a free dimension. A sequence
   * has an input for each tensor, "x[0]=2x3" and so on, or "x=empty"; "x=none" leaves out what is
   * optional. */
  const char *const *shapes;
  size_t shape_count;
  /* Values of inputs that the compiler must know, such as the target of a Reshape. The model is
   * then right for these values alone; runs that bring others are refused. */
  const PleatNamedTensor *known;
  size_t known_count;
  int threads;     /* of a run, while compiling takes up to five; 0: one for each core */
  const char *cpu; /* "avx512", "avx2", "baseline", "sse2" or "scalar"; NULL: all that is here */
  int quick;       /* not 0: code is made in less time and runs slower, for what runs once or so */
  /* How tensors lie in memory, in any spelling of layouts. "x=NHWC" is how the caller has an input
   * or output: runs take and give tensors of its physical shape, which pleat_model_input and
   * pleat_model_output tell; what lies in padding is anybody's. "Conv=NHWC" is how operators of a
   * kind, or one node by its name, read and write all their tensors of as many axes;
   * "conv1:data=NCHW8c,weight=OIHW16i16o" names operands. What is kept is the layout of a tensor,
   * or of all that a node reads and writes, by its name; "" keeps every layout as it is. */
  const char *const *input_layouts;
  size_t input_layout_count;
  const char *const *output_layouts;
  size_t output_layout_count;
  const char *const *desired_layouts;
  size_t desired_layout_count;
  const char *const *keep_layouts;
  size_t keep_layout_count;
  /* How all other layouts are chosen: "optimal" (as NULL), "forward", "backward" or "none". */
  const char *policy;
} PleatRequest;

/* An input or an output. Borrowed, until the model is freed. */
typedef struct PleatArgument {
  const char *name; /* as the model has it */
  const char *type; /* "float32", "int64", "bool", "bfloat16", … */
  PleatElement element;
  int32_t rank; /* the caller's, where a layout was asked for */
  const int64_t *shape;
} PleatArgument;

typedef struct PleatModel PleatModel;

/* *model is owned, NULL unless the status is PLEAT_OK. *messages (`messages` may be NULL) is owned
 * text: every error and warning with its place in the model, one below the other, all that are
 * found and not only the first; NULL when there is none. Weights are copied: neither the file nor
 * `bytes` is needed afterwards. */
int pleat_model_compile(const PleatRequest *request, PleatModel **model, char **messages);

/* NULL is no mistake. No run may be under way. */
void pleat_model_free(PleatModel *model);

/* How many, and number `i` of them in the model's order; NULL where there is no such one. */
int pleat_model_input_count(const PleatModel *model);
int pleat_model_output_count(const PleatModel *model);
const PleatArgument *pleat_model_input(const PleatModel *model, int i);
const PleatArgument *pleat_model_output(const PleatModel *model, int i);

/* Computes the outputs, one tensor for each in the model's order, of exactly their types and
 * shapes, compact, anywhere in memory. Their contents are overwritten; they must overlap neither
 * each other nor the inputs, which are only read. *messages as above. */
int pleat_model_run(PleatModel *model, const PleatTensor *inputs, int input_count,
                    PleatTensor *outputs, int output_count, char **messages);

#ifdef __cplusplus
}
#endif
#endif
