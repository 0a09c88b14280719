// SPDX-License-Identifier: Apache-2.0
// Compiles an ONNX model and saves it, so that other programs load it without a compiler:
//   cc save.c $(pkg-config --cflags --libs pleat) -o save && ./save digits.onnx digits.pleat
#include <pleat/pleat.h>
#include <stdio.h>

int main(int argc, char **argv) {
  if (argc != 3) return fprintf(stderr, "usage: save MODEL.onnx SAVED\n"), 2;
  PleatRequest request = {.size = sizeof request, .path = argv[1]};
  PleatModel *model;
  PleatMessages *messages;
  int status = pleat_model_compile(&request, &model, &messages);
  if (status == PLEAT_OK) {
    pleat_messages_free(messages);
    status = pleat_model_save(model, argv[2], &messages);
  }
  fputs(pleat_messages_text(messages), stderr);
  pleat_messages_free(messages);
  pleat_model_free(model);
  return status != PLEAT_OK;
}
