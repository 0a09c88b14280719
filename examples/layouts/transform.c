// SPDX-License-Identifier: Apache-2.0
// Asks what a copy from NCHW to a blocked layout needs, with the installed library:
//   cc transform.c $(pkg-config --cflags --libs pleat) && ./a.out
#include <inttypes.h>
#include <pleat/layout.h>
#include <stdio.h>

static int failed(int status, PleatMessages *messages) {
  fputs(pleat_messages_text(messages), stderr);
  pleat_messages_free(messages);
  return status != PLEAT_OK;
}

int main(void) {
  PleatMessages *messages;
  PleatLayout *blocked, *plain, *map;
  PleatValue *padding;
  PleatLoops *loops;
  int verdict, counted;
  int status = pleat_layout_read("NCHW16c", "1x30x7x7", &blocked, &messages);
  if (failed(status, messages)) return 1;
  status = pleat_layout_read("NCHW", "1x30x7x7", &plain, &messages);
  if (failed(status, messages)) return 1;
  // Where does an element go that is at p in NCHW?
  status = pleat_layout_divide(blocked, plain, &verdict, &map, NULL, NULL, &messages);
  if (failed(status, messages) || verdict != PLEAT_YES) return 1;
  printf("from NCHW  %s\n", pleat_layout_spelling(map));
  status = pleat_layout_padding_count(blocked, &counted, &padding, NULL, NULL, &messages);
  if (failed(status, messages) || counted != PLEAT_YES) return 1;
  printf("padding    %s elements\n", padding->text);
  status = pleat_layout_loop_order(blocked, &verdict, &loops, NULL, &messages);
  if (failed(status, messages) || verdict != PLEAT_YES) return 1;
  for (int i = 0; i < loops->count; i++)
    printf("loop       %s of axis %s, stride %" PRId64 "\n", loops->loops[i].extent.text,
           pleat_layout_axis(blocked, loops->loops[i].axis), loops->loops[i].stride.number);
  printf("guard      %s\n", loops->guard ? loops->guard : "none");
  pleat_free(loops);
  pleat_free(padding);
  pleat_layout_free(map);
  pleat_layout_free(plain);
  pleat_layout_free(blocked);
  return 0;
}
