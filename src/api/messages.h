// SPDX-License-Identifier: Apache-2.0
// The status and messages that a call of the library returns, taken from its context.
#ifndef PLEAT_API_MESSAGES_H
#define PLEAT_API_MESSAGES_H

#include "base/base.h"

// The status (pleat.h) of a call, where `done` tells whether the call succeeded. When `messages` is
// not NULL, *messages receives owned text: the diagnostics, or how the call failed; NULL when there
// is neither. The context's diagnostics are cleared.
int messages_take(Context *context, bool done, char **messages);

#endif
