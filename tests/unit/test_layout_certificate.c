// SPDX-License-Identifier: Apache-2.0
// Certificates: every answer on random layouts gets one, and what is changed in one is noticed.
#include "layout_support.h"

#include "layout/check/check.h"

static const LayoutAsk questions[] = {LAYOUT_ASK_IDENTITY, LAYOUT_ASK_INJECTIVE,
                                      LAYOUT_ASK_ONTO,     LAYOUT_ASK_BIJECTIVE,
                                      LAYOUT_ASK_INVERSE,  LAYOUT_ASK_PADDING};
static int asked, proofs, points, witnesses, counts;

static LayoutAnswer ask(LayoutAsk question, const Layout *layout) {
  return layout_ask(context, &(LayoutQuestion){question, layout, layout});
}

static void count_way(const char *text) {
  proofs += strstr(text, "\nby proof") != NULL;
  points += strstr(text, "\nby points") != NULL;
  witnesses += strstr(text, "\nby witness") != NULL;
  counts += strstr(text, "\nby count") != NULL;
}

static void expect_accepted(const char *text) {
  int line;
  const char *wrong = layout_check(text, &line);
  if (wrong) fail_msg("rejected at line %d, %s: %s", line, wrong, text);
}

static const char *certificate(LayoutAsk question, const Layout *a, const Layout *b,
                               const LayoutAnswer *answer) {
  const char *text = layout_certificate(context, &(LayoutQuestion){question, a, b}, answer);
  asked++;
  if (!text) fail_msg("no certificate of question %d on %s", question, layout_text(context, a));
  expect_accepted(text);
  count_way(text);
  return text;
}

static void test_random_layouts(void **state) {
  (void)state;
  for (int i = 0; i < 600; i++) {
    int64_t shape[3];
    int rank;
    if (i % 100 == 0) {
      context_free(context);
      context = context_new();
    }
    const Layout *layout = random_layout(shape, &rank);
    if (!layout) continue;
    for (int q = 0; q < COUNT_OF(questions); q++) {
      LayoutAnswer answer = ask(questions[q], layout);
      if (answer.verdict != VERDICT_UNDECIDED) certificate(questions[q], layout, NULL, &answer);
    }
  }
  print_message("%d certificates: %d by proof, %d by witness, %d by count, %d by points\n", asked,
                proofs, witnesses, counts, points);
}

// ---- Mutations ---------------------------------------------------------------------------------

static int mutants, survivors;

static bool accepts(const char *text) {
  int line;
  return !layout_check(text, &line);
}

// By enumeration. Places outside of the physical box have no row in its table, but two elements can
// be told apart there too.
static bool may_hold(const char *text) {
  int line;
  const char *wrong = layout_check(text, &line);
  return !wrong || (strstr(text, "claim injective") && !strcmp(wrong, "the map leaves its box"));
}

// Decides the goal by enumeration alone. A goal with the verdict no holds when its yes fails.
static bool is_true(const char *text) {
  const char *claim = strstr(text, "claim "), *by = strstr(text, "\nby ");
  const char *line = strchr(claim, '\n');
  bool no = line - claim > 3 && !strncmp(line - 3, " no", 3);
  if (!no)
    return may_hold(arena_printf(&context->scratch, "%.*s\nby points\n", (int)(by - text), text));
  Text yes = text_new(&context->scratch);
  text_append(&yes, text, (size_t)(line - 3 - text));
  text_puts(&yes, " yes");
  text_append(&yes, line, (size_t)(by - line));
  text_puts(&yes, "\nby points\n");
  return !accepts(text_string(&yes));
}

static void try_mutant(const char *original, const char *text) {
  if (!strcmp(original, text)) return;
  mutants++;
  if (!accepts(text)) return;
  survivors++;
  if (!is_true(text)) fail_msg("accepted, but not true:\n%s\nmade from\n%s", text, original);
}

// Every number and every line of the certificate.
static void mutate(const char *text) {
  for (const char *p = text; *p; p++) {
    ArenaMark mark = arena_mark(&context->scratch);
    bool digit = *p >= '0' && *p <= '9', last = !(p[1] >= '0' && p[1] <= '9');
    for (int change = 1; digit && last && change < 10; change += 7) {
      char *mutant = arena_copy(&context->scratch, text, strlen(text) + 1);
      mutant[p - text] = (char)('0' + (*p - '0' + change) % 10);
      try_mutant(text, mutant);
    }
    const char *end = strchr(p, '\n');
    if ((p == text || p[-1] == '\n') && end)
      try_mutant(text, arena_printf(&context->scratch, "%.*s%s", (int)(p - text), text, end + 1));
    if (!strncmp(p, " yes\n", 5) || !strncmp(p, " no\n", 4))
      try_mutant(text, arena_printf(&context->scratch, "%.*s%s%s", (int)(p - text), text,
                                    p[1] == 'y' ? " no" : " yes", end));
    arena_reset(&context->scratch, mark);
  }
}

static void test_mutants(void **state) {
  (void)state;
  seed = 4711;
  for (int i = 0; i < 25; i++) {
    int64_t shape[3];
    int rank;
    const Layout *layout = random_layout(shape, &rank);
    if (!layout || layout->physical_rank > 6) continue;
    for (int q = 0; q < COUNT_OF(questions); q++) {
      LayoutAnswer answer = ask(questions[q], layout);
      if (answer.verdict == VERDICT_UNDECIDED) continue;
      const char *text = certificate(questions[q], layout, NULL, &answer);
      if (strlen(text) < 1500) mutate(text);
    }
  }
  print_message("%d mutants, %d accepted and true\n", mutants, survivors);
  assert_true(mutants > 1000);
}

// Claims that are false with proofs that look right.
static void test_false_claims(void **state) {
  (void)state;
  static const char *const texts[] = {
      // the inverse reads the index it should find
      "claim injective yes axis c < 4 place p < 4 = 0 back c = c by proof indices qed",
      "claim injective yes axis c < 4 = c place p < 4 = 0 by proof indices qed",
      "claim injective yes axis c < 4 let d = c place p < 4 = 0 back c = d by proof indices qed",
      // a place that is read before it is known
      "claim onto yes axis c < 4 place p < 4 = p back c = p except 0 by proof indices qed",
      // the other axis is forgotten
      "claim injective yes axis c < 4 axis d < 2 place p < 4 = c back c = p by proof indices qed",
      // nothing is said of which indices
      "claim equal yes axis c < 4 place p = c other 0 by proof qed",
      "claim equal yes axis c < 4 place p = c other 0 by proof split 0 else end indices qed",
      // no elements: nothing is reached, all shapes are still there
      "claim onto yes axis c < 0 place p < 4 = c back c = p except 0 by proof indices "
      "fact 0 - 1 by 1 of 0 1 of 1 over 1 qed",
      "claim equal yes axis c < 0 place p = c other c shape extent = 0 other 4 by proof indices "
      "fact 0 - 1 by 1 of 0 1 of 1 over 1 qed",
      // elements and places of which two extents are negative
      "claim onto yes symbol C axis c < C - 9 axis d < C - 9 place p < C - 9 = c "
      "place q < C - 9 = d back c = p back d = q except 0 by proof indices qed",
      // what an empty box of indices shows is used of the places
      "claim inverse yes axis c < 0 place p < 4 = c back c = p by proof indices "
      "fact 0 - 1 by 1 of 0 1 of 1 over 1 places qed",
      // a step that does not follow
      "claim equal yes axis c < 4 place p = c // 2 other 0 by proof indices floor c by 2 = new q "
      "fact 0 - q by 1 of 1 1 of 3 over 2 fact q by 1 of 0 1 of 4 over 2 qed",
      // a quotient that is none
      "claim equal yes axis c < 4 place p = c // 2 other 0 by proof indices floor c by 2 = 0 qed",
      // the instance is against the facts
      "claim equal no symbol C symbol r = 4 - C axis c < C at 5 place p = c % 4 other c by witness",
      "claim equal no symbol C = 5 symbol r = 4 - C axis c < C at 4 place p = c % 4 other c "
      "by witness",
      // a multiplier below 0, one that is no number, and a divisor below 1
      "claim equal yes axis c < 4 place p = c other 0 by proof indices "
      "fact 0 - c by 0 - 1 of 0 over 1 fact c by 1 of 0 over 1 qed",
      "claim equal yes axis c < 4 place p = c other 0 by proof indices "
      "fact 0 - c by c of 0 over 1 qed",
      "claim equal yes axis c < 4 place p = c other 0 by proof indices "
      "fact 0 - c by 1 of 0 over 0 qed",
      // one case is left out, one is used after its end
      "claim equal yes axis c < 4 place p = c <= 2 ? c : 2 other c by proof indices "
      "split 2 - c qed",
      "claim equal yes axis c < 4 place p = c other 3 by proof indices "
      "split c - 3 else fact 0 - 1 by 1 of 3 1 of 3 over 1 end qed",
      // the place is reached; the indices are one; it is outside of the box
      "claim onto no axis c < 4 place p < 5 = c at 3 back c = p by proof indices qed",
      "claim onto no axis c < 4 place p < 5 = c at 3 by points",
      "claim onto no axis c < 4 place p < 4 = c by count",
      "claim injective no axis c < 4 at 1 also 1 place p < 4 = c by witness",
      "claim injective no axis c < 4 at 1 also 5 place p < 4 = c % 4 by witness",
      "claim equal no axis c < 4 at 4 place p = c other c % 4 by witness",
      // a shape is no part of other claims
      "claim injective no axis c < 4 at 1 also 2 place p < 4 = c shape x = 1 other 2 by witness",
      // copies of one element may meet, those of two may not
      "claim onto yes axis c < 2 copy r < 2 place p < 4 = c back c = p except 0 by proof indices "
      "qed",
      "claim injective no axis c < 2 at 1 also 1 copy r < 2 at 0 also 1 place p < 4 = c by witness",
      // a case of the symbols alone is no case of the indices
      "claim injective yes axis c < 4 place p < 4 = 0 back c = 0 by proof split 0 else end indices "
      "qed",
      // a place that is none, which the way back does not need
      "claim injective yes axis c < 4 place p < 4 = c place q < 4 = c // 0 back c = p by proof "
      "indices qed",
      // the witnesses are places that move with them
      "claim injective no axis c < 4 at p also 1 place p < 9 = c + 1 by witness",
      // a number that has no negative
      "claim equal yes axis c < 1 place p = ( 0 - 4611686018427387904 * 4611686018427387904 ) * 8 "
      "// ( 0 - 1 ) other ( 0 - 4611686018427387904 * 4611686018427387904 ) * 8 by points",
      // a quotient is no fact, and no parameter
      "claim equal yes axis c < 4 place p = c // 2 other 0 by proof indices floor c by 2 = new q "
      "fact 0 - q by 1 of 5 over 1 fact q by 1 of 0 1 of 4 over 2 qed",
      "claim equal yes axis c < 4 place p = c other 0 by proof indices floor c by 1 = new q "
      "fact q by 0 of 0 over 1 qed",
      // an index outside of the shape, one that the map sends elsewhere, none for the padding
      "claim onto yes axis c < 4 place p < 5 = c back c = p except 0 by section places qed",
      "claim onto yes axis c < 4 place p < 5 = c back c = p except 1 by section places qed",
      "claim onto yes axis c < 4 place p < 2 = c // 2 back c = p except 0 by section places "
      "floor p by 2 = 0 fact 3 - p by 1 of 1 over 1 qed",
      "claim onto yes axis c < 4 place p < 5 = c back c = p padding 4 <= p except 0 by section "
      "places split p - 4 else fact 3 - p by 1 of 3 over 1 end qed",
      "claim onto yes axis c < 4 place p < 4 = c except 0 by section places qed",
      "claim onto yes axis c < 4 place p < 4 = c back c = c except 0 by section places qed",
      "claim onto yes axis c < 4 place p < 5 = c back c = p except 0 by section indices qed",
      "claim onto yes axis c < 0 place p < 1 = 0 back c = 0 except 0 by section places qed",
      "claim onto no axis c < 4 place p < 4 = c at 3 back c = p by section places qed",
      "claim injective yes axis c < 4 place p < 2 = c // 2 back c = 2 * p by section places "
      "floor 2 * p by 2 = p fact 2 * p by 2 of 0 over 1 fact 3 - 2 * p by 2 of 1 over 1 qed",
      // a floor that may be below 0 is no parameter, nor is one of the index
      "claim equal yes symbol C axis c < 4 place p = c other c by proof floor 0 - C by 2 = new q "
      "fact q by 0 of 0 over 1 indices qed",
      "claim equal yes symbol C axis c < 4 place p = c other c by proof indices floor c by 2 = new "
      "q fact q by 0 of 0 over 1 qed",
      // in one of two cases of the symbols the claim is false, or nothing is said of the indices
      "claim equal yes symbol C axis c < C place p = C <= 4 ? c : 0 other c by proof split 4 - C "
      "indices else indices end indices qed",
      "claim equal yes symbol C axis c < 4 place p = c other c shape e = C <= 4 ? 4 : 5 other 4 "
      "by proof split 4 - C indices else indices end indices qed",
      "claim equal yes symbol C axis c < C place p = C <= 4 ? c : 0 other c by proof split 4 - C "
      "indices else end indices qed",
      "claim equal yes symbol C axis c < C place p = C <= 4 ? c : 0 other c by proof split 4 - C "
      "indices end indices qed",
      "claim onto yes symbol C axis c < C place p < ( C <= 4 ? C : 5 ) = c back c = p except 0 "
      "by section split 4 - C places else places end places qed",
      "claim onto no axis c < 4 place p < 5 = c at 3 back c = p by proof split 0 indices else "
      "indices end indices qed",
      // the second of two claims
      "claim equal yes axis c < 4 place p = c other c by points "
      "claim equal yes axis c < 4 place p = c other c + 1 by points",
  };
  for (int i = 0; i < COUNT_OF(texts); i++)
    if (accepts(texts[i])) fail_msg("accepted: %s", texts[i]);
}

// Their like that are true, so that those above are refused for the right reason.
static void test_true_claims(void **state) {
  (void)state;
  static const char *const texts[] = {
      "claim injective yes axis c < 4 place p < 4 = 3 - c back c = 3 - p by proof indices qed",
      "claim onto yes axis c < 4 place p < 4 = c back c = p except 0 by proof indices qed",
      "claim onto yes axis c < 0 place p < 4 = c back c = p except 4 by proof indices "
      "fact 0 - 1 by 1 of 0 1 of 1 over 1 qed",
      "claim equal yes axis c < 4 place p = c // 4 other 0 by proof indices floor c by 4 = 0 qed",
      "claim equal yes axis c < 4 place p = c // 4 other 0 by proof indices floor c by 4 = new q "
      "fact 0 - q by 1 of 1 1 of 3 over 4 fact q by 1 of 0 1 of 4 over 4 qed",
      "claim equal no symbol C = 4 symbol r = 4 - C axis c < C at 3 place p = c % 4 other c // 2 "
      "by witness",
      "claim equal yes axis c < 4 place p = c <= 2 ? c : 3 other c by proof indices split 2 - c "
      "else fact c - 3 by 1 of 3 over 1 fact 3 - c by 1 of 1 over 1 end qed",
      "claim onto no axis c < 4 place p < 5 = c at 4 back c = p by proof indices qed",
      "claim onto no axis c < 4 place p < 5 = c at 4 by points",
      "claim onto no axis c < 4 place p < 5 = c by count",
      "claim injective no axis c < 4 at 1 also 3 place p < 4 = c % 2 by witness",
      "claim injective yes axis c < 2 copy r < 2 place p < 4 = c back c = p by proof indices qed",
      "claim equal no axis c < 4 place p = c other c shape extent = 4 other 5 by witness",
      "claim inverse yes axis c < 3 place p < 4 = c back c = p padding 3 <= p by proof indices "
      "fact 3 - c by 1 of 1 over 1 places split p - 3 else fact 2 - p by 1 of 3 over 1 end qed",
      "claim equal yes axis c < 4 let d = 2 * c place p = d // 2 other c by proof indices "
      "floor 2 * c by 2 = c qed claim equal yes axis c < 4 place p = c other c by points",
      "claim equal yes axis c < 9 place p = ( 4 - c ) // ( 0 - 2 ) other ( c - 4 ) // 2 by points",
      "claim equal yes axis c < 9 place p = 6 & ( c ^ 3 ) other ( 6 & c ) ^ 2 by points",
      "claim equal yes symbol C axis c < C place p = c & c other c | c by proof indices qed",
      "claim equal yes symbol C axis c < 4 place p = c other c by proof floor C by 2 = new q "
      "fact q by 0 of 0 over 1 indices qed",
      "claim equal yes symbol C axis c < C place p = C <= 4 ? c : 0 other 5 <= C ? 0 : c shape e = "
      "C <= 4 ? 4 : 5 other 5 <= C ? 5 : 4 by proof split 4 - C indices else indices end indices "
      "qed",
      "claim onto yes symbol C axis c < C place p < ( C <= 4 ? C : 5 ) = c back c = p except 0 "
      "by section split 4 - C places else places fact C - 1 - p by 1 of 1 1 of 3 over 1 end "
      "places qed",
      "claim onto yes axis c < 4 place p < 2 = c // 2 back c = 2 * p except 0 by section places "
      "floor 2 * p by 2 = p fact 2 * p by 2 of 0 over 1 fact 3 - 2 * p by 2 of 1 over 1 qed",
      "claim onto yes axis c < 4 copy r < 2 place p < 4 = c back c = p back r = 1 except 0 "
      "by section places qed",
  };
  for (int i = 0; i < COUNT_OF(texts); i++) expect_accepted(texts[i]);
}

// ---- Equality, symbols, copies -----------------------------------------------------------------

static const Layout *parse(const char *text, const LayoutExpr *const *shape, int rank,
                           LayoutFacts facts) {
  LayoutSource source = layout_source(text, rank);
  source.symbols = true;
  const Layout *layout = layout_parse(context, &source, shape, rank, facts);
  if (!layout) fail_msg("%s is no layout", text);
  return layout;
}

static void test_symbols(void **state) {
  (void)state;
  static const struct {
    const char *a, *b;
  } rows[] = {
      {"c, w -> (c*W + w)//W, w", "c, w -> c, w in [C, W]"},
      {"c, w -> c//16, w, c%16", NULL},
      {"c, w -> c//16, c%16*W + w", NULL},
      {"c, w -> C - 1 - c, w", NULL},
      {"c, w -> w, c", NULL},
      {"c, w -> c//16, c//4%4, w, c%4", NULL},
      {"c, w -> w//8, c, w//2%4, w%2", NULL},
      {"c, w -> w//64, c, w//32%2, w%32", NULL},
      {"c, w -> w//2*C + c, w%2", NULL},
      {"c, w -> c, max(w, 6)", "c, w -> c, max(6, w)"},
  };
  const LayoutExpr *shape[2] = {layout_symbol(context, str_intern(context, "C")),
                                layout_symbol(context, str_intern(context, "W"))};
  LayoutFact known[] = {{.symbol = str_intern(context, "C"), .min = 16, .multiple = 16},
                        {.symbol = str_intern(context, "W"), .min = 1, .max = 40}};
  LayoutFacts facts = {known, 2};
  for (int i = 0; i < COUNT_OF(rows); i++) {
    const Layout *a = parse(rows[i].a, shape, 2, facts);
    const Layout *b = rows[i].b ? parse(rows[i].b, shape, 2, facts) : a;
    LayoutAnswer answer = layout_equal(context, a, b);
    if (answer.verdict != VERDICT_UNDECIDED) certificate(LAYOUT_ASK_EQUAL, a, b, &answer);
    for (int q = 0; q < COUNT_OF(questions) - 1; q++) {
      answer = ask(questions[q], a);
      if (answer.verdict == VERDICT_UNDECIDED)
        print_message("undecided: %s, %d\n", rows[i].a, q);
      else
        certificate(questions[q], a, NULL, &answer);
    }
  }
}

// XORs whose operands have as many bits as are known, though the extents are not.
static void test_symbolic_xors(void **state) {
  (void)state;
  static const struct {
    const char *a, *b;
    bool both; // extents are symbols, else the second is 64
  } rows[] = {
      {"i, j -> i, j ^ (i % 8)", "i, j -> i, (i % 8) ^ j", false},
      {"i, j -> i, j ^ (i % 2)", NULL, false},
      {"i, j -> i, ((j//8) ^ (i % 8))*8 + j % 8", NULL, false},
      {"i, j -> i, j//4, (j % 4) ^ (i % 4)", NULL, false},
      {"i, j -> i, j//4*4 + ((j % 4) ^ (i % 4))", NULL, true},
      {"i, j -> i//8, i % 8, j//16, (j % 16) ^ (i % 8)", NULL, true},
      {"i, j -> i//4, j//16, (j % 16) ^ (i % 4 * 4), i % 4", NULL, true},
      {"i, j -> i, ((j//8) ^ (i % 8))*8 + j % 8", "i, j -> i, j ^ (i % 8 * 8)", false},
      {"i, j -> i, j ^ 5", "i, j -> i, 5 ^ j", false},
      {"i, j -> i, ((j//8) ^ (i//2 % 4))*8 + j % 8", NULL, false},
      {"i, j -> i, j//8*8 + 7 - j % 8 in [H, W]", NULL, true},
      {"i, j -> i, j ^ 5 in [H, W]", NULL, true},
      {"i, j -> i, j ^ (i % 8) ^ (i//8 % 8)", NULL, false},
      {"i, j -> i, j//16, (j % 16) ^ (i % 8) ^ (i//8 % 8)", NULL, true},
  };
  Str names[2] = {str_intern(context, "H"), str_intern(context, "W")};
  LayoutFact known[2] = {{.symbol = names[0], .min = 8, .multiple = 8},
                         {.symbol = names[1], .min = 32, .multiple = 32}};
  LayoutFacts facts = {known, 2};
  for (int i = 0; i < COUNT_OF(rows); i++) {
    const LayoutExpr *shape[2] = {layout_symbol(context, names[0]),
                                  rows[i].both ? layout_symbol(context, names[1])
                                               : layout_const(context, 64)};
    const Layout *a = parse(rows[i].a, shape, 2, facts);
    const Layout *b = rows[i].b ? parse(rows[i].b, shape, 2, facts) : a;
    LayoutAnswer answer = layout_equal(context, a, b);
    assert_int_equal(answer.verdict, VERDICT_YES);
    assert_non_null(certificate(LAYOUT_ASK_EQUAL, a, b, &answer));
    for (int q = 0; q < COUNT_OF(questions) - 1; q++) {
      answer = ask(questions[q], a);
      assert_int_not_equal(answer.verdict, VERDICT_UNDECIDED);
      assert_non_null(certificate(questions[q], a, NULL, &answer));
    }
  }
}

// Maps that are onto and not injective.
static void test_sections(void **state) {
  (void)state;
  static const char *const texts[] = {
      "i, j -> i%16, j", "i, j -> i//8, j", "i, j -> j",      "i, j -> i & 7, j",
      "i, j -> 0, j",    "i, j -> i//H, j", "i, j -> j, j%1",
  };
  Str name = str_intern(context, "H");
  LayoutFact fact = {.symbol = name, .min = 16, .multiple = 8};
  LayoutFacts facts = {&fact, 1};
  const LayoutExpr *shape[2] = {layout_symbol(context, name), layout_const(context, 1000000007)};
  for (int i = 0; i < COUNT_OF(texts); i++) {
    const Layout *a = parse(texts[i], shape, 2, facts);
    LayoutAnswer answer = layout_is_onto(context, a);
    assert_int_equal(answer.verdict, VERDICT_YES);
    assert_non_null(strstr(certificate(LAYOUT_ASK_ONTO, a, NULL, &answer), "\nby section"));
  }
}

// Large shapes, where nothing is enumerated.
static void test_large_layouts(void **state) {
  (void)state;
  static const struct {
    const char *text;
    int64_t shape[4];
    int rank;
  } rows[] = {
      {"n, c, h, w -> n, c//16, h, w, c%16", {32, 1000, 224, 224}, 4},
      {"i, j -> i, (j//8 ^ i%8)*8 + j%8", {4096, 64}, 2},
      {"i, j -> i, j ^ i", {4096, 4096}, 2},
      {"i, j -> (49*i + j)//16, (49*i + j)%16", {99991, 49}, 2},
      {"i, j -> i//8, j//128, i%8//2, j%128, i%2", {1000, 4096}, 2},
      {"i, j -> 99999 - i, (j + 3)%1024", {100000, 1024}, 2},
  };
  for (int i = 0; i < COUNT_OF(rows); i++) {
    const Layout *layout = layout_parse_static(context, rows[i].text, rows[i].shape, rows[i].rank);
    for (int q = 0; q < COUNT_OF(questions); q++) {
      LayoutAnswer answer = ask(questions[q], layout);
      assert_int_not_equal(answer.verdict, VERDICT_UNDECIDED);
      const char *text = certificate(questions[q], layout, NULL, &answer);
      assert_null(strstr(text, "\nby points"));
    }
  }
}

// ---- Equations ---------------------------------------------------------------------------------

static int equations;

static const LayoutAnswer yes = {.verdict = VERDICT_YES};

static const char *text_of(const LayoutQuestion *question, const LayoutAnswer *answer) {
  return layout_certificate(context, question, answer);
}

static const char *is_shown(const LayoutQuestion *question, const LayoutAnswer *answer) {
  const char *text = text_of(question, answer);
  if (!text)
    fail_msg("no certificate: question %d of %s", question->ask, layout_text(context, question->a));
  expect_accepted(text);
  equations++;
  return text;
}

static void show_steps(const Layout *a) {
  const LayoutExpr *strides[8];
  bool any = false;
  for (int i = 0; i < a->rank; i++) {
    LayoutAnswer answer = layout_stride(context, a, i, &strides[i]);
    any |= answer.verdict == VERDICT_YES;
    int64_t width = layout_vector_width(context, a, i);
    int64_t widths[8] = {0};
    widths[i] = width;
    LayoutQuestion vector = {LAYOUT_ASK_VECTOR, a, .widths = widths};
    if (width == 1 && a->extents[i] < 2) continue;
    const char *text = is_shown(&vector, &yes);
    assert_true(2 * width > a->extents[i] || strstr(text, "claim equal no"));
    widths[i] = 2 * width;
    if (2 * width <= a->extents[i]) assert_null(text_of(&vector, &yes));
  }
  if (any) is_shown(&(LayoutQuestion){LAYOUT_ASK_STRIDES, a, .strides = strides}, &yes);
}

static void show_box(const Layout *a) {
  const LayoutExpr *low[8], *extent[8];
  int64_t step[8];
  LayoutQuestion slice = {LAYOUT_ASK_SLICE, a, .low = low, .extent = extent, .step = step};
  for (int i = 0; i < a->rank; i++) {
    int64_t first = random_below((int)a->extents[i]),
            size = 1 + random_below((int)(a->extents[i] - first));
    step[i] = 1 + random_below(2);
    low[i] = layout_const(context, first);
    extent[i] = layout_const(context, (size + step[i] - 1) / step[i]);
  }
  LayoutAnswer answer = layout_slice(context, a, low, extent, step, &slice.slice);
  is_shown(&slice, &answer);
}

static void show_yes(LayoutQuestion question, LayoutAnswer answer) {
  if (answer.verdict == VERDICT_YES) is_shown(&question, &answer);
}

static void show_pair(const Layout *a, const Layout *b) {
  LayoutInverse map;
  LayoutRefinement refinement;
  LayoutBlocking blocking;
  LayoutAnswer answer = layout_maps_equal(context, a, b->map);
  int order[8];
  if (a->physical_rank == b->physical_rank)
    is_shown(&(LayoutQuestion){LAYOUT_ASK_SAME_MAP, a, .map = b->map}, &answer);
  answer = layout_divide(context, a, b, &map);
  show_yes((LayoutQuestion){LAYOUT_ASK_DIVIDE, a, b, .inverse = map}, answer);
  answer = layout_divide_left(context, a, b, &map);
  show_yes((LayoutQuestion){LAYOUT_ASK_DIVIDE_LEFT, a, b, .inverse = map}, answer);
  answer = layout_refine(context, a, b, &refinement);
  show_yes((LayoutQuestion){LAYOUT_ASK_REFINE, a, b, .refinement = refinement}, answer);
  answer = layout_is_blocking(context, a, &blocking);
  show_yes((LayoutQuestion){LAYOUT_ASK_BLOCKING, a, .blocking = blocking}, answer);
  answer = layout_is_permutation(context, a, order);
  show_yes((LayoutQuestion){LAYOUT_ASK_PERMUTATION, a, .order = order}, answer);
  answer = layout_is_reshape(context, a, b);
  if (answer.verdict == VERDICT_YES || answer.witness)
    is_shown(&(LayoutQuestion){LAYOUT_ASK_RESHAPE, a, b}, &answer);
}

static void show_lanes(const Layout *a) {
  int axis = random_below(a->rank);
  LayoutAccess access = {.lanes = layout_run_lanes(context, a->rank, NULL, axis, 1),
                         .extents = &a->extents[axis]};
  LayoutConflicts found;
  LayoutBanks banks = {8 << random_below(4), 4, 4 << random_below(4)};
  LayoutAnswer answer = layout_bank_conflicts(context, a, &access, banks, &found);
  if (answer.verdict != VERDICT_UNDECIDED)
    is_shown(&(LayoutQuestion){LAYOUT_ASK_CONFLICTS, a, .accesses = &access, .access_count = 1,
                               .banks = banks},
             &answer);
}

static void test_equations(void **state) {
  (void)state;
  const Layout *before = NULL;
  seed = 99;
  for (int i = 0; i < 300; i++) {
    int64_t shape[3], index[3];
    int rank;
    const Layout *a = random_layout(shape, &rank);
    if (!a || !rank) continue;
    for (int j = 0; j < rank; j++) index[j] = random_below((int)shape[j]);
    int64_t offset;
    assert_true(layout_offset(a, index, &offset));
    LayoutQuestion at = {LAYOUT_ASK_OFFSET, a, .index = index, .value = number(offset)};
    is_shown(&at, &yes);
    at.value = number(offset + 1);
    assert_null(text_of(&at, &yes));
    show_steps(a);
    show_box(a);
    show_lanes(a);
    show_pair(a, a);
    if (before && before->rank == a->rank &&
        !memcmp(before->extents, a->extents, sizeof *shape * (size_t)rank))
      show_pair(a, before);
    const Layout *flat = layout_flattened(context, a);
    show_pair(a, flat);
    before = a;
  }
  print_message("%d equations\n", equations);
}

static void test_copies(void **state) {
  (void)state;
  static const struct {
    const char *a, *b;
    int64_t rows;
    bool equal;
  } rows[] = {
      {"i; r=2, s=3 -> i, r @lane, s @lane", "i; s=2, r=3 -> i, s @lane, r @lane", 5, true},
      {"i; r=6 -> i, r @lane", "i; r=2, s=3 -> i, 3*r + s @lane", 5, true},
      {"i; r=6 -> i, r @lane", "i; r=2, s=3 -> i, r + 2*s @lane", 1 << 20, true},
      {"i; r=4 -> i, r @lane", "i; r=4 -> i, 3 - r @lane", 1 << 24, true},
      {"i; r=4 -> i, (r + i) % 4 @lane", "i; r=4 -> i, r ^ (i % 4) @lane", 13, true},
      {"i; r=2 -> i, 2*r @lane in [13, 3]", "i; r=2 -> i, r @lane in [13, 3]", 13, false},
      {"i; r=2 -> i, r * (i % 2) @lane in [13, 2]", "i; r=2 -> i, r @lane", 13, false},
  };
  int inverses = 0;
  for (int i = 0; i < COUNT_OF(rows); i++) {
    const Layout *a = layout_parse_static(context, rows[i].a, &rows[i].rows, 1);
    const Layout *b = layout_parse_static(context, rows[i].b, &rows[i].rows, 1);
    assert_true(a && b);
    LayoutAnswer answer = layout_equal(context, a, b);
    assert_int_equal(answer.verdict, rows[i].equal ? VERDICT_YES : VERDICT_NO);
    certificate(LAYOUT_ASK_EQUAL, a, b, &answer);
    LayoutInverse inverse;
    answer = layout_inverse(context, a, &inverse);
    if (answer.verdict != VERDICT_YES) continue;
    inverses++;
    const char *text = certificate(LAYOUT_ASK_INVERSE, a, NULL, &answer);
    assert_true(rows[i].rows < 1 << 20 || strstr(text, "\nby proof"));
  }
  assert_true(inverses >= 4);
  int64_t shape[] = {12};
  static const char *const collide[] = {"i; r=4 -> (i + 3*r) % 12", "i; r=9, s=11 -> i + 3*r*s"};
  for (int i = 0; i < COUNT_OF(collide); i++) {
    const Layout *a = layout_parse_static(context, collide[i], shape, 1);
    LayoutAnswer answer = layout_is_injective(context, a);
    assert_int_equal(answer.verdict, VERDICT_NO);
    certificate(LAYOUT_ASK_INJECTIVE, a, NULL, &answer);
  }
}

int main(void) {
  context = context_new();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random_layouts), cmocka_unit_test(test_mutants),
      cmocka_unit_test(test_false_claims),   cmocka_unit_test(test_symbols),
      cmocka_unit_test(test_symbolic_xors),  cmocka_unit_test(test_large_layouts),
      cmocka_unit_test(test_true_claims),    cmocka_unit_test(test_equations),
      cmocka_unit_test(test_copies),         cmocka_unit_test(test_sections),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  context_free(context);
  return failed;
}
