// SPDX-License-Identifier: Apache-2.0
// What a context has to say at the edge of the library.
#ifndef PLEAT_API_MESSAGES_H
#define PLEAT_API_MESSAGES_H

#include "base/base.h"

// The status (pleat.h) of a call that was `done` or not. *messages, when `messages` is not NULL,
// gets the diagnostics or how the call failed as owned text, NULL when there is nothing to say.
// Afterwards the context has nothing more to say.
int messages_take(Context *context, bool done, char **messages);

#endif
