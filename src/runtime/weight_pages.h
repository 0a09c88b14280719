// SPDX-License-Identifier: Apache-2.0
// Declares the move of a program's weights from the pages of a file into huge pages.
#ifndef PLEAT_RUNTIME_WEIGHT_PAGES_H
#define PLEAT_RUNTIME_WEIGHT_PAGES_H

#include <stddef.h>

typedef struct WeightPages WeightPages;

// For weights that a private mapping of a file holds, which nobody writes. NULL where the move does
// not pay: few weights, little memory, no huge pages.
WeightPages *weight_pages_new(const void *weights, size_t bytes);
// Notes that a run begins. A later one of them begins the move, in a thread of its own. Threads may
// call this at the same time; NULL is allowed.
void weight_pages_note_run(WeightPages *pages);
// Waits for the end of the move. The weights stay where they are until the mapping is removed.
void weight_pages_free(WeightPages *pages); // NULL is allowed

#endif
