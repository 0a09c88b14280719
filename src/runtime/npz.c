// SPDX-License-Identifier: Apache-2.0
// Reads and writes NumPy's .npz, a zip archive with one .npy a member. Archives are written
// uncompressed and without times, so that the same arrays give the same bytes.
#include "runtime/runtime.h"

#include <errno.h>
#include <stdlib.h>
#include <unzip.h>
#include <zip.h>

enum { LONGEST_MEMBER_NAME = 512 };

// ---- Reading ---------------------------------------------------------------------------------

typedef struct NpzReader {
  Context *context;
  SourcePos pos;
  unzFile archive;
  char member[LONGEST_MEMBER_NAME + 1];
} NpzReader;

static bool bad_member(NpzReader *r, const char *what) {
  return diag_error(r->context, r->pos, "member '%s' %s", r->member, what);
}

// The member's bytes, unpacked, in scratch. Sizes that the archive claims are not trusted.
static bool read_member(NpzReader *r, Text *data) {
  if (unzGetCurrentFileInfo64(r->archive, NULL, r->member, LONGEST_MEMBER_NAME, NULL, 0, NULL, 0) !=
      UNZ_OK)
    return bad_member(r, "has a damaged entry");
  if (unzOpenCurrentFile(r->archive) != UNZ_OK)
    return bad_member(r, "is packed in a way that is not supported");
  char buffer[1 << 14];
  int n;
  while ((n = unzReadCurrentFile(r->archive, buffer, sizeof buffer)) > 0)
    text_append(data, buffer, (size_t)n);
  bool whole = unzCloseCurrentFile(r->archive) == UNZ_OK && n == 0;
  return whole || bad_member(r, "is damaged");
}

static bool read_array(NpzReader *r, NamedTensorArray *out) {
  ArenaMark mark = arena_mark(&r->context->scratch);
  Text data = text_new(&r->context->scratch);
  Tensor *tensor = NULL;
  if (read_member(r, &data)) {
    const char *name = str_format(r->context, "%s:%s", r->pos.file->name, r->member);
    tensor = npy_parse(r->context, name, text_string(&data), data.size);
  }
  arena_reset(&r->context->scratch, mark);
  if (!tensor) return false;
  size_t length = strlen(r->member);
  if (length > 4 && strcmp(r->member + length - 4, ".npy") == 0) length -= 4;
  NamedTensor named = {str_intern_n(r->context, r->member, length), tensor};
  array_push(&r->context->arena, out, named);
  return true;
}

bool npz_read(Context *context, const char *path, NamedTensorArray *out) {
  NpzReader r = {
      .context = context, .pos = source_file_pos(context, path), .archive = unzOpen64(path)};
  if (!r.archive) return diag_error(context, r.pos, "cannot be read as a .npz archive");
  int first = out->count, state = unzGoToFirstFile(r.archive);
  bool ok = true;
  while (ok && state == UNZ_OK) {
    ok = read_array(&r, out);
    if (ok) state = unzGoToNextFile(r.archive);
  }
  if (ok && state != UNZ_END_OF_LIST_OF_FILE)
    ok = diag_error(context, r.pos, "its list of members is damaged");
  unzClose(r.archive);
  while (!ok && out->count > first) tensor_free(out->items[--out->count].tensor);
  return ok;
}

// ---- Writing ---------------------------------------------------------------------------------

static bool write_member(zipFile archive, const char *name, const Text *data) {
  enum { VERSION_MADE_BY = 20, NAME_IS_UTF8 = 1 << 11 };
  const uLong first_of_january_1980 = (uLong)(1 << 5 | 1) << 16;
  zip_fileinfo info = {.dosDate = first_of_january_1980};
  if (zipOpenNewFileInZip4_64(archive, name, &info, NULL, 0, NULL, 0, NULL, 0, 0, 0, 0, 0, 0, NULL,
                              0, VERSION_MADE_BY, NAME_IS_UTF8, data->size > UINT32_MAX) != ZIP_OK)
    return false;
  bool ok = true;
  for (size_t done = 0; ok && done < data->size;) {
    unsigned n = (unsigned)MIN_OF(data->size - done, (size_t)1 << 30);
    ok = zipWriteInFileInZip(archive, data->data + done, n) == ZIP_OK;
    done += n;
  }
  return zipCloseFileInZip(archive) == ZIP_OK && ok;
}

static bool write_array(Context *context, zipFile archive, const NamedTensor *named) {
  ArenaMark mark = arena_mark(&context->scratch);
  Text data = text_new(&context->scratch);
  npy_print(named->tensor, &data);
  bool ok = write_member(archive, arena_printf(&context->scratch, "%s.npy", named->name), &data);
  arena_reset(&context->scratch, mark);
  return ok;
}

bool npz_write(Context *context, FileSet *files, const char *path, const NamedTensor *tensors,
               int count) {
  const char *temporary = file_set_begin(files, path);
  if (!temporary) return false;
  zipFile archive = zipOpen64(temporary, APPEND_STATUS_CREATE);
  bool ok = archive != NULL;
  for (int i = 0; ok && i < count; i++) ok = write_array(context, archive, &tensors[i]);
  if (archive) ok &= zipClose(archive, NULL) == ZIP_OK;
  return ok || file_set_fail(files, path, errno);
}
