// SPDX-License-Identifier: Apache-2.0
// Reads and writes NumPy's .npy: a magic number, a version, and a header that is a Python
// dictionary of three keys, padded so that the elements start at a multiple of 64 bytes (NEP 1,
// versions 1 to 3).
#include "runtime/runtime.h"

#include <ctype.h>
#include <stdlib.h>

static const struct {
  const char *descr; // without the byte order
  ElementType type;
} kinds[] = {
    {"b1", {ELEMENT_BOOL, 8, 1}},   {"i1", {ELEMENT_INT, 8, 1}},    {"i2", {ELEMENT_INT, 16, 1}},
    {"i4", {ELEMENT_INT, 32, 1}},   {"i8", {ELEMENT_INT, 64, 1}},   {"u1", {ELEMENT_UINT, 8, 1}},
    {"u2", {ELEMENT_UINT, 16, 1}},  {"u4", {ELEMENT_UINT, 32, 1}},  {"u8", {ELEMENT_UINT, 64, 1}},
    {"f2", {ELEMENT_FLOAT, 16, 1}}, {"f4", {ELEMENT_FLOAT, 32, 1}}, {"f8", {ELEMENT_FLOAT, 64, 1}},
};

static const char magic[6] = "\x93NUMPY";

// ---- Reading ---------------------------------------------------------------------------------

typedef struct Header {
  ElementType type;
  bool swapped, by_columns;
  int rank;
  int64_t shape[TENSOR_MAX_RANK];
} Header;

typedef struct NpyReader {
  Context *context;
  SourcePos pos;
  const char *at, *end; // what is left of the header
  Header header;
  int keys;
} NpyReader;

static void skip_space(NpyReader *r) {
  while (r->at < r->end && isspace((unsigned char)*r->at)) r->at++;
}

static bool accept(NpyReader *r, char c) {
  skip_space(r);
  if (r->at == r->end || *r->at != c) return false;
  r->at++;
  return true;
}

static bool expect(NpyReader *r, char c) {
  return accept(r, c) || diag_error(r->context, r->pos, "expected '%c' in the header", c);
}

// string = "'" ... "'" | '"' ... '"'
static bool read_string(NpyReader *r, const char **text, int *size) {
  skip_space(r);
  char quote = r->at < r->end ? *r->at : 0;
  if (quote != '\'' && quote != '"')
    return diag_error(r->context, r->pos, "expected a string in the header");
  const char *close = memchr(r->at + 1, quote, (size_t)(r->end - r->at - 1));
  if (!close) return diag_error(r->context, r->pos, "a string in the header does not end");
  *text = r->at + 1;
  *size = (int)(close - *text);
  r->at = close + 1;
  return true;
}

static bool read_type(NpyReader *r) {
  const char *text;
  int size;
  if (!read_string(r, &text, &size)) return false;
  bool has_order = size > 0 && strchr("<>|=", *text);
  for (int i = 0; i < COUNT_OF(kinds); i++)
    if (size - has_order == 2 && strncmp(text + has_order, kinds[i].descr, 2) == 0) {
      r->header.type = kinds[i].type;
      r->header.swapped = *text == '>';
      return true;
    }
  return diag_error(r->context, r->pos, "element type '%.*s' is not supported", size, text);
}

static bool read_order(NpyReader *r) {
  skip_space(r);
  static const char *const words[] = {"False", "True"};
  for (int i = 0; i < 2; i++) {
    size_t size = strlen(words[i]);
    if ((size_t)(r->end - r->at) < size || strncmp(r->at, words[i], size) != 0) continue;
    r->header.by_columns = i == 1;
    r->at += size;
    return true;
  }
  return diag_error(r->context, r->pos, "'fortran_order' is neither True nor False");
}

static bool read_extent(NpyReader *r, int64_t *extent) {
  skip_space(r);
  if (r->at == r->end || !isdigit((unsigned char)*r->at))
    return diag_error(r->context, r->pos, "expected an extent in 'shape'");
  *extent = 0;
  while (r->at < r->end && isdigit((unsigned char)*r->at))
    if (!mul_fits(*extent, 10, extent) || !add_fits(*extent, *r->at++ - '0', extent))
      return diag_error(r->context, r->pos, "an extent in 'shape' is too large");
  accept(r, 'L');
  return true;
}

// shape = "(" [extent {"," extent} [","]] ")"
static bool read_shape(NpyReader *r) {
  if (!expect(r, '(')) return false;
  while (!accept(r, ')')) {
    if (r->header.rank == TENSOR_MAX_RANK)
      return diag_error(r->context, r->pos, "has more than %d axes", TENSOR_MAX_RANK);
    if (!read_extent(r, &r->header.shape[r->header.rank++])) return false;
    if (accept(r, ',')) continue;
    if (!expect(r, ')')) return false;
    break;
  }
  return true;
}

static bool read_entry(NpyReader *r) {
  static const struct {
    const char *name;
    bool (*read)(NpyReader *r);
  } entries[] = {{"descr", read_type}, {"fortran_order", read_order}, {"shape", read_shape}};
  const char *key;
  int size;
  if (!read_string(r, &key, &size) || !expect(r, ':')) return false;
  for (int i = 0; i < COUNT_OF(entries); i++)
    if ((int)strlen(entries[i].name) == size && strncmp(entries[i].name, key, (size_t)size) == 0) {
      if (r->keys & (1 << i)) return diag_error(r->context, r->pos, "'%s' twice", entries[i].name);
      r->keys |= 1 << i;
      return entries[i].read(r);
    }
  return diag_error(r->context, r->pos, "unknown key '%.*s' in the header", size, key);
}

// header = "{" {string ":" value [","]} "}"
static bool read_header(NpyReader *r) {
  if (!expect(r, '{')) return false;
  while (!accept(r, '}')) {
    if (!read_entry(r)) return false;
    if (!accept(r, ',') && (skip_space(r), r->at == r->end || *r->at != '}')) return expect(r, '}');
  }
  return r->keys == 7 ||
         diag_error(r->context, r->pos, "the header lacks 'descr', 'fortran_order' or 'shape'");
}

// Finds the header's text; the elements follow it.
static bool find_header(NpyReader *r, const char *data, size_t size) {
  if (size > 4 && memcmp(data, "PK\3\4", 4) == 0)
    return diag_error(r->context, r->pos,
                      "is a .npz archive of several arrays; save the array that is meant as .npy");
  if (size < 10 || memcmp(data, magic, sizeof magic) != 0)
    return diag_error(r->context, r->pos, "is not a .npy file");
  unsigned char version = (unsigned char)data[6];
  if (version < 1 || version > 3)
    return diag_error(r->context, r->pos, "is .npy of version %d; 1 to 3 are known", version);
  int width = version == 1 ? 2 : 4;
  size_t length = 0;
  for (int i = 0; i < width && 8 + (size_t)i < size; i++)
    length |= (size_t)(unsigned char)data[8 + i] << 8 * i;
  if (size < 8 + (size_t)width || length > size - 8 - (size_t)width)
    return diag_error(r->context, r->pos, "ends within its header");
  r->at = data + 8 + width;
  r->end = r->at + length;
  return true;
}

static void swap_bytes(Tensor *tensor) {
  int64_t size = element_bytes(tensor->type), bytes = tensor_bytes(tensor);
  char *data = tensor->data;
  for (int64_t i = 0; i < bytes; i += size)
    for (int64_t a = i, b = i + size - 1; a < b; a++, b--) {
      char c = data[a];
      data[a] = data[b];
      data[b] = c;
    }
}

// Copies the elements into row-major order; they are column-major where the header says so.
static void take_elements(Tensor *to, const Header *header, const void *data) {
  Tensor from = *to;
  int64_t strides[TENSOR_MAX_RANK], step = 1;
  for (int i = 0; i < header->rank; i++) {
    strides[i] = step;
    step *= header->shape[i];
  }
  from.data = (void *)data;
  if (header->by_columns) from.strides = strides;
  tensor_copy(to, &from);
  if (header->swapped) swap_bytes(to);
}

static bool count_bytes(const Header *header, int64_t *bytes) {
  *bytes = element_bytes(header->type);
  for (int i = 0; i < header->rank; i++)
    if (!mul_fits(*bytes, header->shape[i], bytes)) return false;
  return true;
}

Tensor *npy_parse(Context *context, const char *name, const void *data, size_t size) {
  NpyReader r = {.context = context, .pos = {.file = source_file_new(context, name, NULL, 0)}};
  if (!find_header(&r, data, size) || !read_header(&r)) return NULL;
  int64_t bytes;
  size_t left = size - (size_t)(r.end - (const char *)data);
  if (!count_bytes(&r.header, &bytes) || (uint64_t)bytes > left) {
    diag_error(context, r.pos, "is shorter than its shape says: %zu bytes of elements", left);
    return NULL;
  }
  Tensor *tensor = tensor_new(r.header.type, r.header.shape, r.header.rank);
  if (tensor)
    take_elements(tensor, &r.header, r.end);
  else
    diag_error(context, r.pos, "there is not enough memory for it");
  return tensor;
}

Tensor *npy_read(Context *context, const char *path) {
  ArenaMark mark = arena_mark(&context->scratch);
  size_t size;
  char *data = file_read(context, &context->scratch, path, &size);
  Tensor *tensor = data ? npy_parse(context, path, data, size) : NULL;
  arena_reset(&context->scratch, mark);
  return tensor;
}

// ---- Writing ---------------------------------------------------------------------------------

// Types that NumPy lacks are written as bytes of their width, as other tools do.
static void print_descr(ElementType type, Text *out) {
  for (int i = 0; i < COUNT_OF(kinds); i++)
    if (element_type_equal(kinds[i].type, type)) {
      text_printf(out, "%c%s", element_bytes(type) == 1 ? '|' : '<', kinds[i].descr);
      return;
    }
  text_printf(out, "%s%d",
              type.code == ELEMENT_INT    ? "|i"
              : type.code == ELEMENT_UINT ? "|u"
                                          : "|V",
              (int)element_bytes(type));
}

static void print_header(const Tensor *tensor, Text *out) {
  text_puts(out, "{'descr': '");
  print_descr(tensor->type, out);
  text_puts(out, "', 'fortran_order': False, 'shape': (");
  for (int i = 0; i < tensor->rank; i++)
    text_printf(out, "%lld,%s", (long long)tensor->shape[i], i + 1 < tensor->rank ? " " : "");
  if (tensor->rank > 1) out->size--;
  text_append(out, "), }", 4);
}

void npy_print(const Tensor *tensor, Text *out) {
  Text header = text_new(out->arena);
  print_header(tensor, &header);
  text_pad(&header, ' ', 63 - (int)((10 + header.size) % 64));
  text_puts(&header, "\n");
  char start[10] = {0};
  memcpy(start, magic, sizeof magic);
  start[6] = 1;
  start[8] = (char)(header.size & 255);
  start[9] = (char)(header.size >> 8);
  text_append(out, start, sizeof start);
  text_append(out, header.data, header.size);
  if (tensor_is_compact(tensor)) {
    text_append(out, tensor_data(tensor), (size_t)tensor_bytes(tensor));
    return;
  }
  for (int64_t i = 0, count = tensor_count(tensor); i < count; i++)
    text_append(out, tensor_element(tensor, i), (size_t)element_bytes(tensor->type));
}

bool npy_write(Context *context, const char *path, const Tensor *tensor) {
  ArenaMark mark = arena_mark(&context->scratch);
  Text text = text_new(&context->scratch);
  npy_print(tensor, &text);
  bool written = file_write(context, path, text.data, text.size);
  arena_reset(&context->scratch, mark);
  return written;
}
