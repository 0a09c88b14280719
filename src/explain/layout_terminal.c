// SPDX-License-Identifier: Apache-2.0
// Writes pictures for a terminal: squares are numbers on a coloured background, or plain numbers;
// padding is `..`. Panels stand beside each other while they fit.
#include "explain/explain.h"

enum { WIDTH = 100 };

typedef struct Terminal {
  Text out;
  bool colour;
} Terminal;

// The colour in the 6x6x6 colour cube of terminals: 16 + 36 r + 6 g + b.
static int ramp(double t) {
  static const int steps[] = {54, 55, 61, 25, 31, 37, 36, 72, 77, 113, 149, 185, 221, 227};
  int i = (int)(t * (COUNT_OF(steps) - 1) + 0.5);
  return steps[MIN_OF(MAX_OF(i, 0), COUNT_OF(steps) - 1)];
}

static int category(int n) {
  static const int colours[] = {153, 216, 150, 217, 183, 229, 116, 212,
                                110, 179, 107, 174, 140, 186, 73,  175};
  return colours[n % COUNT_OF(colours)];
}

static const char *cell_text(const PictureCell *cell) {
  return !cell->text ? "" : cell->padding ? ".." : cell->text;
}

static int cell_width(const PicturePanel *panel) {
  size_t width = 1;
  for (int i = 0; i < panel->rows * panel->columns; i++)
    width = MAX_OF(width, strlen(cell_text(&panel->cells[i])));
  for (int c = 0; panel->column_names && c < panel->columns; c++)
    width = MAX_OF(width, strlen(panel->column_names[c]));
  return (int)width + 1;
}

static int name_width(const PicturePanel *panel) {
  size_t width = 0;
  for (int r = 0; panel->row_names && r < panel->rows; r++)
    width = MAX_OF(width, strlen(panel->row_names[r]));
  return (int)width + 1;
}

static int panel_width(const PicturePanel *panel) {
  int width = name_width(panel) + 1 + cell_width(panel) * panel->columns;
  return MAX_OF(width, panel->title ? (int)strlen(panel->title) : 0);
}

static int panel_lines(const PicturePanel *panel) {
  return panel->rows + (panel->title != NULL) + (panel->column_names != NULL);
}

static void put_cell(Terminal *t, const PictureCell *cell, int width) {
  const char *text = cell_text(cell);
  if (t->colour && cell->text && cell->padding)
    text_printf(&t->out, "\033[2m%*s\033[0m", width, text);
  else if (t->colour && cell->text)
    text_printf(&t->out, "\033[48;5;%dm\033[38;5;%dm%*s\033[0m",
                cell->shade < 0 ? category(cell->category) : ramp(cell->shade),
                cell->shade >= 0 && cell->shade < 0.45 ? 231 : 16, width, text);
  else
    text_printf(&t->out, "%*s", width, text);
}

// Writes line `line` of a panel, padded to the panel's width.
static void put_line(Terminal *t, const PicturePanel *panel, int line, bool last) {
  int width = cell_width(panel), names = name_width(panel), full = panel_width(panel), used = 0;
  if (panel->title && line-- == 0) {
    text_puts(&t->out, panel->title);
    used = (int)strlen(panel->title);
  } else if (panel->column_names && line-- == 0) {
    text_pad(&t->out, ' ', names + 1);
    for (int c = 0; c < panel->columns; c++)
      text_printf(&t->out, "%*s", width, panel->column_names[c]);
    used = names + 1 + width * panel->columns;
  } else if (line < panel->rows) {
    text_printf(&t->out, "%*s|", names, panel->row_names ? panel->row_names[line] : "");
    for (int c = 0; c < panel->columns; c++)
      put_cell(t, &panel->cells[line * panel->columns + c], width);
    used = names + 1 + width * panel->columns;
  }
  if (!last) text_pad(&t->out, ' ', full - used + 3);
}

static void end_line(Terminal *t) {
  while (t->out.size && t->out.data[t->out.size - 1] == ' ') t->out.size--;
  text_puts(&t->out, "\n");
}

static void put_section(Terminal *t, const PictureSection *section) {
  text_printf(&t->out, "\n%s   (%s)\n", section->heading, section->legend);
  for (int first = 0; first < section->panel_count;) {
    int count = 0, width = 0, lines = 0;
    while (first + count < section->panel_count) {
      const PicturePanel *panel = &section->panels[first + count];
      if (count && width + panel_width(panel) > WIDTH) break;
      width += panel_width(panel) + 3;
      lines = MAX_OF(lines, panel_lines(panel));
      count++;
    }
    for (int line = 0; line < lines; line++) {
      for (int i = 0; i < count; i++)
        put_line(t, &section->panels[first + i], line, i + 1 == count);
      end_line(t);
    }
    first += count;
    if (first < section->panel_count) text_puts(&t->out, "\n");
  }
  if (section->left_out) text_printf(&t->out, "%s\n", section->left_out);
}

const char *picture_text(Context *context, const Picture *picture, bool colour) {
  Terminal t = {text_new(&context->arena), colour};
  text_printf(&t.out, "%s\n%s\n", picture->title, picture->subtitle);
  for (int i = 0; i < picture->section_count; i++) put_section(&t, &picture->sections[i]);
  return text_string(&t.out);
}
