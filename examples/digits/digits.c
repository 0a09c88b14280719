// SPDX-License-Identifier: Apache-2.0
// An example of Pleat as a library: compiles the network digits.onnx for this machine, classifies
// the held-out images with it, draws some of them, and compares outputs with the interpreter's.
//   digits FOLDER
#include "driver/driver.h"
#include "driver/reference.h"
#include "frontend/onnx/onnx.h"

#include <stdlib.h>
#include <unistd.h>

enum { SIDE = 8, PIXELS = SIDE * SIDE, CLASSES = 10, DRAWN = 8, MOST_MISTAKES = 3, CHECKED = 24 };

typedef struct Demo {
  Context *context;
  const char *folder;
  GraphFunc *graph;
  Program *program;
  Executable *executable;
  ThreadPool *pool;
  Tensor *images, *labels, *input, *output;
  int count, right;
  int *predicted;
  float (*outputs)[CLASSES];
  double build_seconds;
  double *seconds; // per image
} Demo;

// ---- Loading and compiling

static const char *path_of(Demo *d, const char *name) {
  return arena_printf(&d->context->arena, "%s/%s", d->folder, name);
}

static bool load_images(Demo *d) {
  d->images = npy_read(d->context, path_of(d, "images.npy"));
  d->labels = npy_read(d->context, path_of(d, "labels.npy"));
  if (!d->images || !d->labels) return false;
  d->count = (int)d->labels->shape[0];
  return tensor_count(d->images) == (int64_t)d->count * PIXELS ||
         diag_error(d->context, (SourcePos){0}, "the images have another size than 8x8");
}

static Tensor *tensor_like(const Value *value) {
  int64_t shape[TENSOR_MAX_RANK];
  value_static_shape(value, shape);
  return tensor_new((ElementType){ELEMENT_FLOAT, 32, 1}, shape, value->rank);
}

static bool compile(Demo *d) {
  int64_t start = clock_now_ns();
  d->graph = onnx_import(d->context, path_of(d, "digits.onnx"), NULL)->graph;
  CompileOptions options = {.machine = machine_probe()};
  d->program = d->graph ? program_build(d->context, d->graph, &options) : NULL;
  d->executable = d->program ? executable_new(d->program, NULL) : NULL;
  d->build_seconds = (double)(clock_now_ns() - start) * 1e-9;
  if (!d->executable) return false;
  d->pool = thread_pool_new(1); // the network is too small to gain from more
  d->input = tensor_like(d->graph->params[0]);
  d->output = tensor_like(d->graph->outputs[0]);
  return d->input && d->output;
}

// ---- Classifying

static int largest(const float *values) {
  int best = 0;
  for (int i = 1; i < CLASSES; i++)
    if (values[i] > values[best]) best = i;
  return best;
}

static const float *image(const Demo *d, int i) {
  return (const float *)d->images->data + (size_t)i * PIXELS;
}

static int label(const Demo *d, int i) {
  return (int)((const int64_t *)d->labels->data)[i];
}

static bool classify(Demo *d) {
  Arena *arena = &d->context->arena;
  d->predicted = arena_array(arena, int, d->count);
  d->outputs = arena_alloc(arena, sizeof *d->outputs * (size_t)d->count);
  d->seconds = arena_array(arena, double, d->count);
  for (int i = 0; i < d->count; i++) {
    memcpy(d->input->data, image(d, i), PIXELS * sizeof(float));
    int64_t start = clock_now_ns();
    if (!executable_run(d->executable, d->pool, &d->input, &d->output)) return false;
    d->seconds[i] = (double)(clock_now_ns() - start) * 1e-9;
    memcpy(d->outputs[i], d->output->data, sizeof d->outputs[i]);
    d->predicted[i] = largest(d->outputs[i]);
    d->right += d->predicted[i] == label(d, i);
  }
  return true;
}

// ---- Drawing: a character shows two pixels, one above the other, in grey on terminals

static void draw_pixels(float above, float below, bool terminal) {
  static const char *const shades[] = {"  ", "..", "::", "oo", "##"};
  int dark = 232 + (int)(above * 23), light = 232 + (int)(below * 23);
  if (terminal)
    printf("\033[38;5;%dm\033[48;5;%dm▀▀\033[0m", dark, light);
  else
    fputs(shades[(int)((above + below) / 2 * 4.99F)], stdout);
}

static void draw_row(const Demo *d, const int *which, int count, bool terminal) {
  for (int y = 0; y < SIDE; y += 2) {
    for (int k = 0; k < count; k++) {
      const float *pixels = image(d, which[k]) + y * SIDE;
      fputs("  ", stdout);
      for (int x = 0; x < SIDE; x++) draw_pixels(pixels[x], pixels[SIDE + x], terminal);
    }
    printf("\n");
  }
  for (int k = 0; k < count; k++) {
    int i = which[k];
    bool right = d->predicted[i] == label(d, i);
    const char *colour = !terminal ? "" : right ? "\033[32m" : "\033[31m";
    char text[32];
    snprintf(text, sizeof text, right ? "it is %d, says %d" : "it is %d, says %d!", label(d, i),
             d->predicted[i]);
    printf("  %s%-16s%s", colour, text, terminal ? "\033[0m" : "");
  }
  printf("\n\n");
}

// Draws images with right predictions, and up to MOST_MISTAKES with wrong ones.
static void draw(const Demo *d) {
  int which[DRAWN], count = 0, mistakes = 0;
  bool terminal = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");
  for (int i = 0; i < d->count && mistakes < MOST_MISTAKES; i++)
    if (d->predicted[i] != label(d, i)) which[DRAWN - ++mistakes] = i;
  for (int i = 0; i < d->count && count < DRAWN - mistakes; i++)
    if (d->predicted[i] == label(d, i)) which[count++] = i;
  draw_row(d, which, DRAWN / 2, terminal);
  draw_row(d, which + DRAWN / 2, DRAWN / 2, terminal);
}

// ---- Checking

static bool check_image(Demo *d, Reference *reference, int i, double *apart) {
  Tolerance tolerance = TOLERANCE_DEFAULT;
  Difference difference;
  memcpy(d->input->data, image(d, i), PIXELS * sizeof(float));
  reference_restart(reference, &d->input);
  const Expected expected = {.value = reference_value(reference, d->graph->outputs[0])};
  if (!expected.value) return false;
  bool agree =
      values_agree(DTYPE_FLOAT32, &expected, d->outputs[i], CLASSES, &tolerance, &difference);
  if (difference.largest > *apart) *apart = difference.largest;
  return agree ||
         diag_error(d->context, (SourcePos){0}, "image %d: the interpreter gives %g, not %g", i,
                    difference.expected, difference.actual);
}

// Checks the first CHECKED images; the interpreter is too slow for all.
static bool check(Demo *d, double *apart) {
  Reference reference;
  bool ok = reference_begin(d->context, d->graph, &d->input, false, NULL, &reference);
  for (int i = 0; ok && i < MIN_OF(CHECKED, d->count); i++)
    ok = check_image(d, &reference, i, apart);
  reference_end(&reference);
  return ok;
}

static void run(void *arg) {
  Demo *d = arg;
  double apart = 0;
  if (!load_images(d) || !compile(d) || !classify(d)) return;
  draw(d);
  Spread latency = spread_of(d->seconds, d->count);
  printf("compiled        %.2f s, %d kernels for %s\n", d->build_seconds,
         d->program->kernels.count, d->program->options.machine.level_name);
  printf("accuracy        %.1f %%   %d of %d held-out images\n", 100.0 * d->right / d->count,
         d->right, d->count);
  printf("latency         %.1f us median   %.1f p10   %.1f p90   (1 thread)\n",
         latency.median * 1e6, latency.p10 * 1e6, latency.p90 * 1e6);
  fflush(stdout);
  if (!check(d, &apart)) return;
  printf("outputs         equal the interpreter's, at most %.1e apart (of %d images)\n", apart,
         MIN_OF(CHECKED, d->count));
}

int main(int argc, char **argv) {
  if (argc != 2) return fputs("usage: digits FOLDER\n", stderr), 2;
  Demo demo = {.context = context_new(), .folder = argv[1]};
  bool ok = demo.context && context_protect(demo.context, run, &demo);
  if (demo.context) diag_print_all(demo.context, stderr);
  ok = ok && demo.context->error_count == 0 && demo.right * 100 >= demo.count * 97;
  executable_free(demo.executable);
  thread_pool_free(demo.pool);
  context_free(demo.context);
  return ok ? 0 : 1;
}
