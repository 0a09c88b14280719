// SPDX-License-Identifier: Apache-2.0
// Loads a saved model and runs it from four threads, each with a session of its own:
//   cc -pthread threads.c $(pkg-config --cflags --libs pleat) -o threads
//   ./threads digits.pleat images.npy
#include <pleat/pleat.h>
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 4, PIXELS = 64, CLASSES = 10, IMAGES = 360, HEADER = 128 };

static PleatModel *model;
static float images[IMAGES][PIXELS];
static int digits[IMAGES];

static int failed(int status, PleatMessages *messages) {
  fputs(pleat_messages_text(messages), stderr);
  pleat_messages_free(messages);
  return status != PLEAT_OK;
}

// Classifies every fourth image from `first` on. Returns `first`, or NULL after an error.
static void *classify(void *first) {
  float chances[CLASSES];
  PleatTensor input = {
      .device_type = 1, .rank = 4, .type = {2, 32, 1}, .shape = (int64_t[]){1, 1, 8, 8}};
  PleatTensor output = {.data = chances,
                        .device_type = 1,
                        .rank = 2,
                        .type = {2, 32, 1},
                        .shape = (int64_t[]){1, CLASSES}};
  PleatSessionOptions options = {.size = sizeof options, .threads = 1};
  PleatSession *session;
  PleatMessages *messages;
  int status = pleat_session_new(model, &options, &session, &messages);
  if (failed(status, messages)) return NULL;
  for (int i = *(int *)first; i < IMAGES && first; i += THREADS) {
    input.data = images[i];
    status = pleat_session_run(session, &input, 1, &output, 1, &messages);
    if (failed(status, messages)) first = NULL;
    for (int k = 1; k < CLASSES; k++)
      if (chances[k] > chances[digits[i]]) digits[i] = k;
  }
  pleat_session_free(session);
  return first;
}

int main(int argc, char **argv) {
  PleatMessages *messages;
  FILE *file = argc == 3 ? fopen(argv[2], "rb") : NULL;
  if (!file || fseek(file, HEADER, SEEK_SET) || fread(images, sizeof images, 1, file) != 1)
    return fprintf(stderr, "usage: threads SAVED images.npy\n"), 2;
  fclose(file);
  int status = pleat_model_load(argv[1], NULL, &model, &messages);
  if (failed(status, messages)) return 1;
  pthread_t threads[THREADS];
  int first[THREADS], errors = 0;
  for (int i = 0; i < THREADS; i++) {
    first[i] = i;
    errors += pthread_create(&threads[i], NULL, classify, &first[i]) != 0;
  }
  for (int i = 0; i < THREADS && !errors; i++) {
    void *done;
    errors += pthread_join(threads[i], &done) || !done;
  }
  pleat_model_free(model);
  for (int i = 0; i < IMAGES && !errors; i++) printf("%d\n", digits[i]);
  return errors != 0;
}
