// SPDX-License-Identifier: Apache-2.0
// Declares how structs of a caller are read, which may be of another version of the public header.
#ifndef PLEAT_BASE_FIELDS_H
#define PLEAT_BASE_FIELDS_H

#include "base/base.h"

// Reports a wrong field of a struct. Returns false.
bool field_error(Context *context, const char *field, const char *format, ...) PRINTF_LIKE(3, 4);
// Copies a caller's struct of a version of its own, whose first member is its size, to one of this
// version: fields that only this version has are zero. False with a diagnostic when the size is
// none, or when a field that this version lacks is not zero. `what` is the name of the struct.
bool struct_read(Context *context, const char *what, const void *given, void *out,
                 size_t known_size);
// Is there an array of `count` items? False with a diagnostic.
bool field_array_check(Context *context, const char *field, const void *items, size_t count);

#endif
