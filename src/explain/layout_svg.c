// SPDX-License-Identifier: Apache-2.0
// Writes pictures as SVG: panels flow in rows; squares carry their short texts, and show the long
// ones on hovering. Only plain elements and one pattern are used, so that every viewer shows them.
#include "explain/explain.h"

enum { PAGE = 1080, MARGIN = 24, GAP = 22, TITLE = 15, ROW_NAMES = 34, HEADING = 44 };

typedef struct Svg {
  Context *context;
  Text body;
  double y, width;
} Svg;

typedef struct SvgColour {
  double r, g, b;
} SvgColour;

// A perceptually even colour ramp that is also readable in grey: from dark blue over green to
// yellow.
static SvgColour ramp(double t) {
  static const SvgColour stops[] = {{68, 56, 134}, {52, 104, 152}, {33, 146, 140},
                                    {93, 186, 98}, {178, 212, 52}, {250, 226, 70}};
  double at = t * (COUNT_OF(stops) - 1);
  int i = (int)at;
  if (i >= COUNT_OF(stops) - 1) return stops[COUNT_OF(stops) - 1];
  double f = at - i;
  return (SvgColour){stops[i].r + f * (stops[i + 1].r - stops[i].r),
                     stops[i].g + f * (stops[i + 1].g - stops[i].g),
                     stops[i].b + f * (stops[i + 1].b - stops[i].b)};
}

// One of sixteen light colours that can be told apart when adjacent; further numbers repeat them.
static SvgColour category(int n) {
  static const SvgColour colours[] = {
      {166, 206, 227}, {253, 205, 140}, {178, 223, 138}, {251, 180, 174},
      {202, 178, 214}, {255, 237, 160}, {141, 211, 199}, {244, 165, 205},
      {128, 177, 211}, {230, 171, 90},  {140, 190, 110}, {240, 140, 130},
      {170, 150, 200}, {225, 205, 110}, {100, 180, 170}, {215, 140, 180}};
  return colours[n % COUNT_OF(colours)];
}

static bool is_dark(SvgColour c) {
  return 0.3 * c.r + 0.59 * c.g + 0.11 * c.b < 140;
}

static void put_escaped(Text *out, const char *text) {
  for (; *text; text++) {
    if (*text == '<')
      text_puts(out, "&lt;");
    else if (*text == '>')
      text_puts(out, "&gt;");
    else if (*text == '&')
      text_puts(out, "&amp;");
    else
      text_append(out, text, 1);
  }
}

static void put_text(Svg *svg, double x, double y, const char *kind, const char *text) {
  text_printf(&svg->body, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", x, y, kind);
  put_escaped(&svg->body, text);
  text_puts(&svg->body, "</text>\n");
}

// ---- A panel ----------------------------------------------------------------------------------

typedef struct Frame { // the geometry of a panel
  const PicturePanel *panel;
  double x, y, size, height; // x, y of the panel; size: a square's width
} Frame;

static void put_cell(Svg *svg, const Frame *frame, int row, int column) {
  const PictureCell *cell = &frame->panel->cells[row * frame->panel->columns + column];
  if (!cell->text) return; // a square after the last offset
  double x = frame->x + column * frame->size, y = frame->y + row * frame->height;
  SvgColour c = cell->shade < 0 ? category(cell->category) : ramp(cell->shade);
  text_printf(&svg->body, "<path class=\"s\" d=\"M%g %gh%gv%gh-%gz\" fill=\"", x, y, frame->size,
              frame->height, frame->size);
  if (cell->padding)
    text_puts(&svg->body, "url(#padding)\"><title>");
  else
    text_printf(&svg->body, "#%02x%02x%02x\"><title>", (int)c.r, (int)c.g, (int)c.b);
  put_escaped(&svg->body, cell->more ? cell->more : "");
  text_puts(&svg->body, "</title></path>");
  if (*cell->text)
    text_printf(&svg->body, "<text x=\"%g\" y=\"%g\" class=\"%s\">%s</text>", x + frame->size / 2,
                y + frame->height / 2 + 3, !cell->padding && is_dark(c) ? "w" : "b", cell->text);
  text_puts(&svg->body, "\n");
}

static int64_t group_at(const PicturePanel *panel, int row, int column) {
  if (row < 0 || column < 0 || row >= panel->rows || column >= panel->columns) return -1;
  const PictureCell *cell = &panel->cells[row * panel->columns + column];
  return cell->text ? cell->group : -1;
}

// Draws the edges between squares of different cache lines as one path.
static void put_outlines(Svg *svg, const Frame *frame) {
  const PicturePanel *panel = frame->panel;
  text_puts(&svg->body, "<path class=\"o\" d=\"");
  for (int r = 0; r <= panel->rows; r++)
    for (int c = 0; c <= panel->columns; c++) {
      double x = frame->x + c * frame->size, y = frame->y + r * frame->height;
      int64_t here = group_at(panel, r, c);
      if (r < panel->rows && here != group_at(panel, r, c - 1))
        text_printf(&svg->body, "M%g %gv%g", x, y, frame->height);
      if (c < panel->columns && here != group_at(panel, r - 1, c))
        text_printf(&svg->body, "M%g %gh%g", x, y, frame->size);
    }
  text_puts(&svg->body, "\"/>\n");
}

static void put_panel(Svg *svg, const Frame *frame) {
  const PicturePanel *panel = frame->panel;
  double top = frame->y - (panel->column_names ? TITLE + 4 : 4);
  if (panel->title) put_text(svg, frame->x, top, "t", panel->title);
  for (int c = 0; panel->column_names && c < panel->columns; c++)
    put_text(svg, frame->x + (c + 0.5) * frame->size, frame->y - 5, "n", panel->column_names[c]);
  for (int r = 0; panel->row_names && r < panel->rows; r++)
    put_text(svg, frame->x - 5, frame->y + (r + 0.5) * frame->height + 3, "e", panel->row_names[r]);
  for (int r = 0; r < panel->rows; r++)
    for (int c = 0; c < panel->columns; c++) put_cell(svg, frame, r, c);
  put_outlines(svg, frame);
}

// ---- Sections ---------------------------------------------------------------------------------

static double square_width(const PictureSection *section) {
  size_t longest = 2;
  for (int i = 0; i < section->panel_count; i++) {
    const PicturePanel *panel = &section->panels[i];
    for (int k = 0; k < panel->rows * panel->columns; k++)
      if (panel->cells[k].text) longest = MAX_OF(longest, strlen(panel->cells[k].text));
  }
  return 8 + (double)(11 * longest + 1) / 2 - (longest & 1 ? 0 : 0.5);
}

static void put_section(Svg *svg, const PictureSection *section) {
  double size = square_width(section), x = MARGIN, tallest = 0;
  put_text(svg, MARGIN, svg->y + 14, "h", section->heading);
  put_text(svg, MARGIN, svg->y + 30, "l", section->legend);
  svg->width = MAX_OF(svg->width, 6.7 * (double)strlen(section->legend) + 2 * MARGIN);
  svg->y += HEADING;
  for (int i = 0; i < section->panel_count; i++) {
    const PicturePanel *panel = &section->panels[i];
    double left = panel->row_names ? ROW_NAMES : 0;
    double top = (panel->title ? TITLE : 0) + (panel->column_names ? TITLE : 0) + 4;
    double width = left + panel->columns * size;
    if (x > MARGIN && x + width > PAGE - MARGIN) {
      x = MARGIN;
      svg->y += tallest + GAP;
      tallest = 0;
    }
    put_panel(svg, &(Frame){panel, x + left, svg->y + top, size, 20});
    svg->width = MAX_OF(svg->width, x + width + MARGIN);
    tallest = MAX_OF(tallest, top + panel->rows * 20.0);
    x += width + GAP;
  }
  svg->y += tallest + GAP;
  if (section->left_out) {
    put_text(svg, MARGIN, svg->y, "l", section->left_out);
    svg->y += GAP;
  }
}

static const char style[] =
    "<style>text{font-family:ui-monospace,'DejaVu Sans Mono',Menlo,monospace;fill:#222}"
    ".b,.w{font-size:9px;text-anchor:middle}.w{fill:#fff}.n{font-size:9px;text-anchor:middle;"
    "fill:#777}.e{font-size:9px;text-anchor:end;fill:#777}.t{font-size:11px;font-weight:600}"
    ".h{font-size:14px;font-weight:600}.l{font-size:11px;fill:#666}.s{stroke:#fff;stroke-width:.7}"
    ".o{stroke:#222;stroke-width:1.5;fill:none;stroke-linecap:square}</style>\n"
    "<defs><pattern id=\"padding\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
    "patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" fill=\"#f4f4f4\"/>"
    "<rect width=\"2\" height=\"6\" fill=\"#b9b9b9\"/></pattern></defs>\n";

const char *picture_svg(Context *context, const Picture *picture) {
  Svg svg = {context, text_new(&context->arena), MARGIN, 480};
  put_text(&svg, MARGIN, svg.y + 12, "h", picture->title);
  put_text(&svg, MARGIN, svg.y + 29, "l", picture->subtitle);
  double head = 8.6 * (double)strlen(picture->title) + 2 * MARGIN;
  double below = 6.7 * (double)strlen(picture->subtitle) + 2 * MARGIN;
  svg.width = MAX_OF(svg.width, MAX_OF(head, below));
  svg.y += HEADING + 8;
  for (int i = 0; i < picture->section_count; i++) put_section(&svg, &picture->sections[i]);
  Text out = text_new(&context->arena);
  text_printf(&out,
              "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
              "viewBox=\"0 0 %.0f %.0f\">\n<rect width=\"100%%\" height=\"100%%\" "
              "fill=\"#fff\"/>\n%s",
              svg.width, svg.y, svg.width, svg.y, style);
  text_append(&out, text_string(&svg.body), svg.body.size);
  text_puts(&out, "</svg>\n");
  return text_string(&out);
}
