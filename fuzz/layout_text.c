// SPDX-License-Identifier: Apache-2.0
// Reads any text as a layout. It must be rejected with a diagnostic inside of the text, or print in
// every spelling as a text that is the same layout.
#include "layout_input.h"

static void check_refused(const LayoutInput *input) {
  const Context *context = input->context;
  layout_input_require(input, context->error_count > 0, "refused without an error");
  for (int i = 0; i < context->diags.count; i++) {
    SourcePos pos = context->diags.items[i].pos;
    bool inside =
        pos.file && pos.begin >= 0 && pos.begin <= pos.end && pos.begin <= (int32_t)input->size;
    layout_input_require(input, inside, "an error outside of the text");
  }
  Text text = text_new(&input->context->scratch);
  for (int i = 0; i < context->diags.count; i++) diag_print(&context->diags.items[i], &text);
}

static void check_map(const LayoutInput *input, const IndexMap *map) {
  const char *texts[] = {index_map_text(input->context, map),
                         index_map_lambda(input->context, map)};
  for (int i = 0; i < COUNT_OF(texts); i++) {
    LayoutSource source = layout_source(texts[i], map->input_count);
    source.symbols = true;
    const IndexMap *again = index_map_parse(input->context, &source);
    layout_input_require(input, again == map, texts[i]);
  }
}

static void check_layout(const LayoutInput *input, const Layout *layout) {
  Context *context = input->context;
  check_map(input, layout->map);
  for (int i = 0; i < LAYOUT_SPELLING_COUNT; i++) {
    const char *why = NULL, *text = layout_spell(context, layout, (LayoutSpelling)i, &why);
    layout_input_require(input, text || why, "neither a text nor a reason");
    if (!text) continue;
    LayoutSource source = layout_source(text, layout->rank);
    source.symbols = !layout->is_static;
    const Layout *back = layout_parse(context, &source, layout->shape, layout->rank, layout->facts);
    layout_input_require(input, back && layout_equal(context, back, layout).verdict == VERDICT_YES,
                         text);
  }
}

static void check(LayoutInput *input) {
  LayoutSource source = {
      .text = input->text, .size = input->size, .rank = input->rank, .symbols = true};
  layout_spelling_of(input->context, &source);
  if (input->rank < 0) {
    const IndexMap *map = index_map_parse(input->context, &source);
    if (map)
      check_map(input, map);
    else
      check_refused(input);
    return;
  }
  const Layout *layout =
      layout_parse(input->context, &source, input->shape, input->rank, (LayoutFacts){0});
  if (layout)
    check_layout(input, layout);
  else
    check_refused(input);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  return layout_input_run(data, size, check);
}
