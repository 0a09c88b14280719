// SPDX-License-Identifier: Apache-2.0
// Lets sums of products compute weights from packed constants where the weights, once computed,
// would not fit into the caches, and each of them is used a few times only:
//   w[n, k] = (b[n, k] - 8) * s[n, k // 32];  y[m, n] = Σ over k of x[m, k] * w[n, k]
//     =>  y[m, n] = Σ over j, i of x[m, j * 32 + i] * ((b[n, j * 32 + i] - 8) * s[n, j])
// A run then reads the packed bytes from memory, which are several times fewer.
#include "graph/stages.h"

// A weight must have this many times the bytes that it is computed from, and at least so many
// elements; a sum may use each at most so many times.
enum { LEAST_WIDENING = 3, LEAST_ELEMENTS = 1 << 16, MOST_USES = 4, MOST_STEPS = 8 };

static double bytes_of(const StageTensor *tensor) {
  return stage_tensor_elements(tensor) * dtype_bytes(tensor->buffer->type);
}

static bool is_elementwise(const Stage *stage) {
  return !stage_is_reduction(stage) && !stage->member_count && !stage->te->program &&
         !stage->te->call && !stage->te->transform;
}

// The bytes of the constants that a tensor is computed from element by element, in at most `steps`
// steps; -1: it is not.
static double source_bytes(const StageTensor *tensor, int steps) {
  if (tensor->data) return (double)tensor->data->bytes;
  if (!tensor->producer || !is_elementwise(tensor->producer) || !steps) return -1;
  double bytes = 0, own = bytes_of(tensor);
  for (int i = 0; i < tensor->producer->reads.count; i++) {
    double part = source_bytes(tensor->producer->reads.items[i], steps - 1);
    if (part < 0) return -1;
    bytes += part;
  }
  return MIN_OF(bytes, own);
}

// Is the tensor only read by sums that use each element a few times, directly or through views?
static bool is_used_rarely(const StageTensor *tensor) {
  bool rarely = tensor->users.count > 0 && !tensor->is_output && !tensor->kept;
  for (int i = 0; i < tensor->users.count && rarely; i++) {
    const Stage *user = tensor->users.items[i];
    if (stage_is_view(user))
      rarely = is_used_rarely(user->output);
    else
      rarely = stage_is_reduction(user) && !stage_is_ordered(user) &&
               stage_iterations(user) <= MOST_USES * stage_tensor_elements(tensor);
  }
  return rarely;
}

static bool is_candidate(const Stage *stage) {
  const StageTensor *output = stage->output;
  double elements = stage_tensor_elements(output);
  if (elements < LEAST_ELEMENTS || !dtype_is_float(output->buffer->type) || stage_is_view(stage))
    return false;
  double source = source_bytes(output, MOST_STEPS);
  return source > 0 && source * LEAST_WIDENING <= bytes_of(output) && is_used_rarely(output);
}

// Keeps a tensor and those of about its size, from which it is computed or that are its views, from
// being computed while compiling.
static void keep(StageTensor *tensor, double elements, bool views) {
  if (tensor->packed || !tensor->producer || 2 * stage_tensor_elements(tensor) < elements) return;
  tensor->packed = true;
  for (int i = 0; i < tensor->producer->reads.count; i++)
    keep(tensor->producer->reads.items[i], elements, false);
  for (int i = 0; i < tensor->users.count && views; i++) {
    Stage *user = tensor->users.items[i];
    if (stage_is_view(user)) keep(user->output, elements, true);
  }
}

void stage_graph_keep_packed(StageGraph *s, const HostMachine *machine) {
  double bytes = 0, caches = (double)(machine->l2_bytes + machine->l3_bytes);
  for (int i = 0; i < s->stages.count; i++)
    if (is_candidate(s->stages.items[i])) bytes += bytes_of(s->stages.items[i]->output);
  if (bytes <= caches) return;
  for (int i = 0; i < s->stages.count; i++)
    if (is_candidate(s->stages.items[i]))
      keep(s->stages.items[i]->output, stage_tensor_elements(s->stages.items[i]->output), true);
}
