// SPDX-License-Identifier: Apache-2.0
// Chooses names for printing, which are valid in Python and unique among the visible names.
#include "script/printer.h"

#include <ctype.h>

Printer printer_new(Context *context, Text *out, const ScriptOptions *options) {
  Arena *arena = out->arena;
  Printer printer = {.context = context, .arena = arena, .out = out};
  if (options) printer.options = *options;
  printer.names = map_new(arena);
  printer.used = map_new(arena);
  printer.buffers = map_new(arena);
  printer.pointers = map_new(arena);
  printer.owners = map_new(arena);
  printer.offsets = map_new(arena);
  printer.loops = map_new(arena);
  return printer;
}

void printer_line(Printer *printer) {
  text_puts(printer->out, "\n");
  text_pad(printer->out, ' ', printer->indent * 4);
}

void printer_note_place(Printer *printer, SourcePos pos) {
  ScriptPlaces *places = printer->options.places;
  if (places && pos.file)
    array_push(printer->arena, places, ((ScriptPlace){printer->out->size + 1, pos}));
}

int printer_column(const Printer *printer) {
  size_t at = printer->out->size;
  while (at > 0 && printer->out->data[at - 1] != '\n') at--;
  return (int)(printer->out->size - at);
}

// Prints a parameter, on a new line below the first one when the line would pass the margin.
void print_parameter(Printer *printer, int column, bool is_first, const char *text) {
  enum { MARGIN = 98 };
  if (!is_first) text_puts(printer->out, ",");
  if (!is_first && printer_column(printer) + 1 + (int)strlen(text) > MARGIN) {
    text_puts(printer->out, "\n");
    text_pad(printer->out, ' ', column);
  } else if (!is_first) {
    text_puts(printer->out, " ");
  }
  text_puts(printer->out, text);
}

bool script_is_reserved(const char *name) {
  static const char *const words[] = {"T", "R", "I", "cls"};
  for (int i = 0; i < COUNT_OF(words); i++)
    if (!strcmp(words[i], name)) return true;
  return py_is_keyword(name);
}

Str printer_valid_name(Printer *printer, const char *name) {
  Arena *scratch = &printer->context->scratch; // the interned name is not in scratch memory
  ArenaMark mark = arena_mark(scratch);
  char *copy = arena_printf(scratch, "%s%s%s", isdigit((unsigned char)*name) || !*name ? "v" : "",
                            name, script_is_reserved(name) ? "_" : "");
  for (char *p = copy; *p;) {
    int letter = py_letter_bytes(p);
    if (!letter && !isalnum((unsigned char)*p) && *p != '_') *p = '_';
    p += MAX_OF(letter, 1);
  }
  Str valid = str_intern(printer->context, copy);
  arena_reset(scratch, mark);
  return valid;
}

static bool is_taken(const Printer *printer, Str name, bool is_pointer) {
  return map_find(&printer->used, name) || map_find(&printer->pointers, name) ||
         (is_pointer && map_find(&printer->buffers, name));
}

static Str unique_name(Printer *printer, const char *name, bool is_pointer) {
  static const char *const builtins[] = {"range", "min", "max", "abs"};
  Str base = printer_valid_name(printer, name);
  for (int i = 0; i < COUNT_OF(builtins); i++)
    if (!strcmp(base, builtins[i])) base = str_format(printer->context, "%s_", base);
  Str unique = base;
  for (int i = 1; is_taken(printer, unique, is_pointer); i++)
    unique = str_format(printer->context, "%s_%d", base, i);
  return unique;
}

static Str define(Printer *printer, const void *object, Str unique) {
  map_put(&printer->names, object, unique);
  map_put(&printer->used, unique, unique);
  Named named = {object, unique, NULL};
  array_push(printer->arena, &printer->visible, named);
  return unique;
}

Str printer_define(Printer *printer, const void *object, Str name) {
  return define(printer, object, unique_name(printer, name, false));
}

Str printer_define_pointer(Printer *printer, const Expr *data) {
  Str name = define(printer, data, unique_name(printer, data->as.var->name, true));
  map_put(&printer->pointers, name, name);
  return name;
}

Str printer_define_buffer(Printer *printer, const Buffer *buffer) {
  Str name = printer_define(printer, buffer, buffer->name);
  map_put(&printer->buffers, name, name);
  if (printer_knows(printer, buffer->data) || map_find(&printer->owners, buffer->data)) return name;
  map_put(&printer->owners, buffer->data, buffer);
  array_last(&printer->visible).data = buffer->data;
  return name;
}

bool printer_knows(const Printer *printer, const void *object) {
  return map_find(&printer->names, object);
}

// The name of an object. An object without a definition keeps its first name until the end.
Str printer_name(Printer *printer, const void *object, Str otherwise) {
  Str name = map_find(&printer->names, object);
  if (name) return name;
  name = unique_name(printer, otherwise, false);
  map_put(&printer->names, object, name);
  map_put(&printer->used, name, name);
  return name;
}

int printer_mark(const Printer *printer) {
  return printer->visible.count;
}

void printer_reset(Printer *printer, int mark) {
  while (printer->visible.count > mark) {
    Named *named = &array_last(&printer->visible);
    map_put(&printer->names, named->object, (void *)NULL);
    map_put(&printer->used, named->name, (void *)NULL);
    if (named->data) map_put(&printer->owners, named->data, (void *)NULL);
    printer->visible.count--;
  }
}
