/* SPDX-License-Identifier: Apache-2.0
 *
 * Pleat's library: the part that is stable.
 *
 * Link with libpleat. Every pointer is marked: *owned* is yours and goes back to pleat_free,
 * *borrowed* belongs to somebody else and is only read. No function keeps what it is given. All may
 * be called by several threads at once.
 *
 * Programs in C that want the layout algebra alone link libpleat_layout and include its own header,
 * layout/layout.h, whose functions and types they then use directly.
 */
#ifndef PLEAT_H
#define PLEAT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version that this header belongs to: major * 10000 + minor * 100 + patch. */
#define PLEAT_VERSION_NUMBER 100

/* The version of the library that runs. The same major as PLEAT_VERSION_NUMBER, and at least it,
 * means that everything declared here is there. */
int pleat_version_number(void);
/* Borrowed, for ever: "0.1.0". */
const char *pleat_version_text(void);

/* Gives back what was owned. NULL is no mistake. */
void pleat_free(void *owned);

/* ---- Layouts ---------------------------------------------------------------------------------
 *
 * A question is a JSON object:
 *
 *   {"op": "inverse", "a": {"layout": "NCHW16c", "shape": [1, 30, 7, 7]}}
 *
 * with "op", the layout or layouts it is about ("a", "b"), and what else that question takes; a
 * layout is an object of a spelling and optionally "shape" (integers or names; without it what the
 * spelling says, or a name for each axis), "physical" (its physical extents), "where" (conditions
 * on the names, such as "C % 16 == 0"), "order" (of the logical axes of a named spelling) and
 * "padding". The reply is an object with "answer", and, where
 * there are such, "witness", "reason", "level", "ns" and further fields; or with "error", which has
 * "message", "field", "column" and "text". `pleat layout --help-batch` lists the questions and
 * their fields.
 *
 * With `certificates` not 0, an answer that is proved comes with "certificate": text that
 * `pleat-check` judges without trusting what made it.
 *
 * Owned text, never NULL but when memory is exhausted. */
char *pleat_layout_query(const char *request, int certificates);

/* Where each element lies: offsets in elements, row-major over the physical axes, in the row-major
 * order of the logical index (with the copies of an element that has several side by side).
 * `layout` is an object as above. `count` is the number of offsets that `offsets` has room for.
 * Returns how many there are, and writes them when they fit; -1 when the layout is refused, is
 * symbolic, or has an element without a place: then *error, if not NULL, gets owned text. */
int64_t pleat_layout_offsets(const char *layout, int64_t *offsets, int64_t count, char **error);

#ifdef __cplusplus
}
#endif
#endif
