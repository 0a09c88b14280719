// SPDX-License-Identifier: Apache-2.0
// Loads a saved model and runs it from four threads, each with a session of its own:
//   cc -pthread threads.c $(pkg-config --cflags --libs pleat) -o threads
//   ./threads digits.pleat images.npy
#include <pleat/pleat.h>
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 4, IMAGES = 360, PIXELS = 64, CLASSES = 10, HEADER = 128 };
static PleatModel *model;
static float images[IMAGES][PIXELS], chances[IMAGES][CLASSES];

// Runs the model on every fourth image from `first` on. Returns `first`, or NULL after an error.
static void *run(void *first) {
  PleatSessionOptions options = {.size = sizeof options, .threads = 1};
  PleatSession *session;
  PleatMessages *messages;
  int status = pleat_check(pleat_session_new(model, &options, &session, &messages), &messages);
  for (int i = *(int *)first; i < IMAGES && status == PLEAT_OK; i += THREADS) {
    PleatTensor input = pleat_tensor(pleat_model_input(model, 0), images[i]);
    PleatTensor output = pleat_tensor(pleat_model_output(model, 0), chances[i]);
    status = pleat_session_run(session, &input, 1, &output, 1, &messages);
    pleat_check(status, &messages);
  }
  pleat_session_free(session);
  return status == PLEAT_OK ? first : NULL;
}

int main(int argc, char **argv) {
  FILE *file = argc == 3 ? fopen(argv[2], "rb") : NULL;
  if (!file || fseek(file, HEADER, SEEK_SET) || fread(images, sizeof images, 1, file) != 1)
    return fprintf(stderr, "usage: threads SAVED images.npy\n"), 2;
  PleatMessages *messages;
  if (pleat_check(pleat_model_load(argv[1], NULL, &model, &messages), &messages)) return 1;
  pthread_t threads[THREADS];
  int first[THREADS] = {0, 1, 2, 3}, failed = 0;
  for (int i = 0; i < THREADS; i++)
    if (pthread_create(&threads[i], NULL, run, &first[i])) return 1;
  void *done;
  for (int i = 0; i < THREADS; i++) failed |= pthread_join(threads[i], &done) || !done;
  pleat_model_free(model);
  for (int i = 0; i < IMAGES && !failed; i++) {
    int digit = 0;
    for (int k = 1; k < CLASSES; k++) digit = chances[i][k] > chances[i][digit] ? k : digit;
    printf("%d\n", digit);
  }
  return failed;
}
