// SPDX-License-Identifier: Apache-2.0
// Every spelling read, printed and read back, and the messages for texts that are none.
#include "layout_texts.h"

static LayoutSpelling kind_of(const char *text) {
  LayoutSource source = layout_source(text, -1);
  return layout_spelling_of(context, &source);
}

static bool same(const Layout *a, const Layout *b) {
  LayoutAnswer answer = layout_equal(context, a, b);
  if (answer.verdict != VERDICT_YES)
    print_error("%s, %s: %s\n", layout_text(context, a), layout_text(context, b),
                layout_answer_text(context, &answer));
  return answer.verdict == VERDICT_YES;
}

// ---- Texts and the index maps they are ---------------------------------------------------------

static const struct {
  const char *text, *map;
  int64_t shape[4];
  int rank;
  LayoutSpelling spelling;
  const char *printed; // NULL: as `text`
} texts[] = {
    {"NCHW16c", "n,c,h,w -> n, c//16, h, w, c%16", {2, 5, 7, 3}, 4, LAYOUT_SPELLING_NAMED, NULL},
    {"NHWC", "n,c,h,w -> n, h, w, c", {2, 5, 7, 3}, 4, LAYOUT_SPELLING_NAMED, NULL},
    {"NHWC of NHWC", "n,h,w,c -> n, h, w, c", {2, 5, 7, 3}, 4, LAYOUT_SPELLING_NAMED, NULL},
    {"OIHW4i16o4i",
     "o,i,h,w -> o//16, i//16, h, w, i//4%4, o%16, i%4",
     {17, 9, 3, 3},
     4,
     LAYOUT_SPELLING_NAMED,
     NULL},
    {"KM8m of MK", "m,k -> k, m//8, m%8", {20, 3}, 2, LAYOUT_SPELLING_NAMED, NULL},
    {"aBcd16b", "a,b,c,d -> a, b//16, c, d, b%16", {2, 5, 7, 3}, 4, LAYOUT_SPELLING_TAG, NULL},
    {"BA16a64b4a",
     "a,b -> b//64, a//64, a//4%16, b%64, a%4",
     {70, 100},
     2,
     LAYOUT_SPELLING_TAG,
     NULL},
    {"acdb", "a,b,c,d -> a, c, d, b", {2, 5, 7, 3}, 4, LAYOUT_SPELLING_TAG, NULL},
    {"lambda *i, c: [*i, c // 4, AXIS_SEPARATOR, c % 4]",
     "a,b,c -> a, b, c//4 | c%4",
     {2, 3, 9},
     3,
     LAYOUT_SPELLING_LAMBDA,
     "lambda i0, i1, c: [i0, i1, c//4, AXIS_SEPARATOR, c%4]"},
    {"(4,8):(8,1)", "i,j -> i*8 + j", {4, 8}, 2, LAYOUT_SPELLING_CUTE, NULL},
    {"( _4, _8 ) : ( _8, _1 )", "i,j -> i*8 + j", {4, 8}, 2, LAYOUT_SPELLING_CUTE, "(4,8):(8,1)"},
    {"((2,4),8):((1,16),2)", "i,j -> i%2 + i//2*16 + j*2", {8, 8}, 2, LAYOUT_SPELLING_CUTE, NULL},
    {"12:3", "i -> i*3", {12}, 1, LAYOUT_SPELLING_CUTE, NULL},
    {"((3,4)):((1,5))", "i -> i%3 + i//3*5", {12}, 1, LAYOUT_SPELLING_CUTE, NULL},
    {"():()", "-> 0", {0}, 0, LAYOUT_SPELLING_CUTE, NULL},
    {"(1,5):(0,2)", "i,j -> j*2", {1, 5}, 2, LAYOUT_SPELLING_CUTE, NULL},
    {"Swizzle<2,0,3> o (8,8):(8,1)",
     "i,j -> i*8 + (j ^ i%4)",
     {8, 8},
     2,
     LAYOUT_SPELLING_CUTE,
     "Sw<2,0,3> o 0 o (8,8):(8,1)"},
    {"Sw<3,3,3> o _0 o (_8,_64):(_64,_1)",
     "i,j -> i*64 + (j//8 ^ i)*8 + j%8",
     {8, 64},
     2,
     LAYOUT_SPELLING_CUTE,
     "Sw<3,3,3> o 0 o (8,64):(64,1)"},
    {"Sw<1,0,-2> o 0 o 8:1", "i -> i ^ (i%2)*4", {8}, 1, LAYOUT_SPELLING_CUTE, NULL},
    {"Sw<0,4,3> o 5 o (2,3):(3,1)", "i,j -> i*3 + j + 5", {2, 3}, 2, LAYOUT_SPELLING_CUTE, NULL},
    {"(4,8):(1@0,1@1)", "i,j -> i, j", {4, 8}, 2, LAYOUT_SPELLING_CUTE, NULL},
    {"ArithTuple(0,_0,_0) o ((_4,_2),2,3):((_1@0,_1@1),_2@1,_1@2)",
     "i,j,k -> i%4, i//4 + j*2, k",
     {8, 2, 3},
     3,
     LAYOUT_SPELLING_CUTE,
     "((4,2),2,3):((1@0,1@1),2@1,1@2)"},
    {"(4,8):(1@1@0,5@2)",
     "i,j -> 0, i, 0, j*5",
     {4, 8},
     2,
     LAYOUT_SPELLING_CUTE,
     "(4,8):(1@1,5@3)"},
    {"(2,2) o ():()", "-> 2, 2", {0}, 0, LAYOUT_SPELLING_CUTE, NULL},
    {"{3,2,1,0}", "a,b,c,d -> a, b, c, d", {2, 3, 4, 5}, 4, LAYOUT_SPELLING_XLA, NULL},
    {"{0,1}", "a,b -> b, a", {2, 3}, 2, LAYOUT_SPELLING_XLA, NULL},
    {"{3,2,1,0:T(8,128)(2,1)}",
     "a,b,c,d -> a, b, c//8, d//128, c%8//2, d%128, c%2, 0",
     {2, 3, 20, 300},
     4,
     LAYOUT_SPELLING_XLA,
     NULL},
    {"f32[3,5]{1,0:T(2,4)}",
     "a,b -> a//2, b//4, a%2, b%4",
     {3, 5},
     2,
     LAYOUT_SPELLING_XLA,
     "{1,0:T(2,4)}"},
    {"s4[<=2,3]{1,0:D(D,D+~)L(4)}",
     "a,b -> 3*a + b in [8]",
     {2, 3},
     2,
     LAYOUT_SPELLING_XLA,
     "{1,0:L(8)}"},
    {"{1,0:T(2,2)L(24)}",
     "a,b -> a//2*12 + b//2*4 + a%2*2 + b%2",
     {4, 6},
     2,
     LAYOUT_SPELLING_XLA,
     NULL},
    {"bf16[2,3]", "a,b -> a, b", {2, 3}, 2, LAYOUT_SPELLING_XLA, "{1,0}"},
    {"f32[]", "->", {0}, 0, LAYOUT_SPELLING_XLA, "{}"},
    {"{2,1,0:T(*,4)}",
     "a,b,c -> a, (5*b + c)//4, (5*b + c)%4",
     {2, 3, 5},
     3,
     LAYOUT_SPELLING_XLA,
     ""},
    {"size=(2, 3, 4) stride=(12, 4, 1)",
     "a,b,c -> 12*a + 4*b + c",
     {2, 3, 4},
     3,
     LAYOUT_SPELLING_TORCH,
     NULL},
    {"torch.Size([2, 3, 4]) (12, 4, 1)",
     "a,b,c -> 12*a + 4*b + c",
     {2, 3, 4},
     3,
     LAYOUT_SPELLING_TORCH,
     "size=(2, 3, 4) stride=(12, 4, 1)"},
    {"x.size() = torch.Size([3]), x.stride() = (2,), storage_offset=7",
     "a -> 2*a + 7",
     {3},
     1,
     LAYOUT_SPELLING_TORCH,
     "size=(3,) stride=(2,) storage_offset=7"},
    {"torch.as_strided(x, (2, 3), (1, 2), 4)",
     "a,b -> a + 2*b + 4",
     {2, 3},
     2,
     LAYOUT_SPELLING_TORCH,
     "size=(2, 3) stride=(1, 2) storage_offset=4"},
    {"torch.empty_strided((2, 3), (0, 1))",
     "a,b -> b",
     {2, 3},
     2,
     LAYOUT_SPELLING_TORCH,
     "size=(2, 3) stride=(0, 1)"},
    {"size=() stride=()", "-> 0", {0}, 0, LAYOUT_SPELLING_TORCH, NULL},
    {"register: [[0, 1]], lane: [[0, 2], [1, 0]], warp: [], block: []",
     "i,j -> j%2 @register, j//2 + 2*i @lane, 0 @warp, 0 @block",
     {2, 4},
     2,
     LAYOUT_SPELLING_LINEAR_LAYOUT,
     NULL},
    {"#ttg.linear<{register = [[0, 1], [2, 0]], lane = [[1, 0], [0, 0]]}>",
     "i,j; r=2 -> i//2*2 + j @register, i%2 + 2*r @lane",
     {4, 2},
     2,
     LAYOUT_SPELLING_LINEAR_LAYOUT,
     "register: [[0, 1], [2, 0]], lane: [[1, 0], [0, 0]]"},
    {" - register=1 -> (0, 1)\n   register=2 -> (1, 1)\n - lane is a size 1 dimension\n"
     "where out dims are: [dim0 (size 2), dim1 (size 2)]",
     "i,j -> (i ^ j) + 2*i @register, 0 @lane",
     {2, 2},
     2,
     LAYOUT_SPELLING_LINEAR_LAYOUT,
     "register: [[0, 1], [1, 1]], lane: []"},
    {"offset: [[1], [2], [4]]", "i -> i", {8}, 1, LAYOUT_SPELLING_LINEAR_LAYOUT, NULL},
    {"S[(8, 4, 2) : (4@lane, 1@lane, 1)] + R[2 : 1@device]",
     "i,j; r=2 -> i*4 + j//2 @lane, j%2, r @device",
     {8, 8},
     2,
     LAYOUT_SPELLING_TILE_LAYOUT,
     NULL},
    {"S[(8,2,4,2):(4@laneid,1@warpid,1@laneid,1)]+R[2:4@warpid]+5@warpid",
     "i,j; r=2 -> i*4 + j//2%4 @laneid, j//8 + 4*r + 5 @warpid, j%2",
     {8, 16},
     2,
     LAYOUT_SPELLING_TILE_LAYOUT,
     "S[(8, 2, 4, 2) : (4@laneid, 1@warpid, 1@laneid, 1)] + R[2 : 4@warpid] + 5@warpid"},
    {"S[4, 6]", "i,j -> i*6 + j", {4, 6}, 2, LAYOUT_SPELLING_TILE_LAYOUT, "S[(4, 6) : (6, 1)]"},
    {"S[12 : 2@m] + O[3]", "i -> i*2 + 3", {12}, 1, LAYOUT_SPELLING_TILE_LAYOUT, "S[12 : 2] + 3"},
    {"0@b + 0@a + S[(2, 3) : (1@a, 1@b)]",
     "i,j -> j @b, i @a",
     {2, 3},
     2,
     LAYOUT_SPELLING_TILE_LAYOUT,
     NULL},
    {"T.ComposeLayout(3, 3, 3, T.TileLayout(T.S[(8, 64):(64, 1)]))",
     "i,j -> i*64 + (j//8 ^ i)*8 + j%8",
     {8, 64},
     2,
     LAYOUT_SPELLING_TILE_LAYOUT,
     "ComposeLayout(3, 3, 3, TileLayout(S[(8, 64) : (64, 1)]))"},
    {"ComposeLayout(SwizzleLayout(0, 1, 2, swizzle_inner=False), S[8])",
     "i -> i ^ (i%2)*4",
     {8},
     1,
     LAYOUT_SPELLING_TILE_LAYOUT,
     "ComposeLayout(0, 1, 2, TileLayout(S[8 : 1]), swizzle_inner=False)"},
    {"T.SwizzleLayout(0, 2, 3)",
     "i,j -> i*8 + (j ^ i%4)",
     {4, 8},
     2,
     LAYOUT_SPELLING_TILE_LAYOUT,
     "ComposeLayout(0, 2, 3, TileLayout(S[(4, 8) : (8, 1)]))"},
    {"T.TileLayout(T.S[(2, 3) : (1 @ T.laneid, 1)] + T.R[2 : 4 @ T.warpid],)",
     "i,j; r=2 -> i @laneid, j, 4*r @warpid",
     {2, 3},
     2,
     LAYOUT_SPELLING_TILE_LAYOUT,
     "S[(2, 3) : (1@laneid, 1)] + R[2 : 4@warpid]"},
};

static void test_texts(void **state) {
  (void)state;
  for (int i = 0; i < COUNT_OF(texts); i++) {
    const char *why = NULL, *printed = texts[i].printed ? texts[i].printed : texts[i].text;
    const Layout *a = layout_of(texts[i].text, texts[i].shape, texts[i].rank);
    const Layout *b = layout_of(texts[i].map, texts[i].shape, texts[i].rank);
    if (!same(a, b)) print_error("%s\n", texts[i].text);
    assert_true(same(a, b));
    assert_int_equal(kind_of(texts[i].text), texts[i].spelling);
    const char *text = layout_spell(context, a, texts[i].spelling, &why);
    if (!*printed) {
      assert_null(text);
      continue;
    }
    if (!text) print_error("%s: %s\n", texts[i].text, why);
    assert_non_null(text);
    assert_string_equal(text, printed);
    assert_int_equal(kind_of(text), texts[i].spelling);
  }
}

// Each row's example is a text of that row.
static void test_table(void **state) {
  (void)state;
  for (int i = 0; i < LAYOUT_SPELLING_COUNT; i++) {
    LayoutSpelling kind = (LayoutSpelling)i, found;
    assert_int_equal(kind_of(layout_spelling_example(kind)), kind);
    assert_true(layout_spelling_find(layout_spelling_name(kind), &found) && found == kind);
    LayoutSource source = layout_source(layout_spelling_example(kind), -1);
    assert_non_null(index_map_parse(context, &source));
  }
}

// ---- What a spelling cannot say ----------------------------------------------------------------

static const struct {
  const char *map;
  int64_t shape[3];
  int rank;
  LayoutSpelling spelling;
  const char *why;
} unsayable[] = {
    {"i,j -> i*8 + (j ^ i)", {8, 8}, 2, LAYOUT_SPELLING_TORCH, "an index has an exclusive or"},
    {"i,j -> i//4, j, i%4",
     {8, 3},
     2,
     LAYOUT_SPELLING_TORCH,
     "PyTorch has one memory axis, not 3; as an index map it is `i, j -> i//4, j, i%4`"},
    {"i,j -> i, i + j",
     {8, 3},
     2,
     LAYOUT_SPELLING_CUTE,
     "a digit of an axis goes to two physical axes; flattened it is `(8,3):(11,1)`"},
    {"i -> i//4*5 + i%4",
     {7},
     1,
     LAYOUT_SPELLING_CUTE,
     "a block does not divide the extent of its axis"},
    {"i -> (i + 1)//2 + i", {4}, 1, LAYOUT_SPELLING_CUTE, "an axis is shifted before it is cut"},
    {"i -> 5 - i", {6}, 1, LAYOUT_SPELLING_TORCH, "PyTorch has no negative strides"},
    {"i -> i%2*3 + i//2", {6}, 1, LAYOUT_SPELLING_TORCH, "an axis has no one stride"},
    {"i,j -> i, j @lane", {6, 2}, 2, LAYOUT_SPELLING_XLA, "XLA has no resources and no replicas"},
    {"i,j -> i | j", {6, 2}, 2, LAYOUT_SPELLING_XLA, "XLA has no axis separators"},
    {"i -> i + 1",
     {6},
     1,
     LAYOUT_SPELLING_XLA,
     "its physical axes are not the axes in some order, cut by tiles"},
    {"i -> i @lane", {6}, 1, LAYOUT_SPELLING_LINEAR_LAYOUT, "an extent is no power of two"},
    {"i -> i + 4 @lane", {4}, 1, LAYOUT_SPELLING_LINEAR_LAYOUT, "it is not linear over bits"},
    {"i -> 2*i @lane in [8]",
     {4},
     1,
     LAYOUT_SPELLING_LINEAR_LAYOUT,
     "some physical indices hold no element"},
    {"i -> i//2 @lane", {4}, 1, LAYOUT_SPELLING_LINEAR_LAYOUT, "elements share a physical index"},
    {"i -> i @lane, i @warp",
     {4},
     1,
     LAYOUT_SPELLING_TILE_LAYOUT,
     "a digit of an axis goes to two physical axes"},
    {"i,j -> i @lane, j @lane",
     {4, 2},
     2,
     LAYOUT_SPELLING_TILE_LAYOUT,
     "shards have one axis of each name"},
    {"i,j -> 4*i + j",
     {4, 2},
     2,
     LAYOUT_SPELLING_NAMED,
     "its physical axes are not whole axes and nested blocks of them"},
    {"first -> first", {4}, 1, LAYOUT_SPELLING_NAMED, "its axes are not named by single letters"},
};

static void test_unsayable(void **state) {
  (void)state;
  for (int i = 0; i < COUNT_OF(unsayable); i++) {
    const char *why = NULL;
    const Layout *layout = layout_of(unsayable[i].map, unsayable[i].shape, unsayable[i].rank);
    assert_null(layout_spell(context, layout, unsayable[i].spelling, &why));
    assert_non_null(why);
    const char *expected =
        str_format(context, "%s cannot express this layout: %s; as an index map it is `%s`",
                   layout_spelling_name(unsayable[i].spelling), unsayable[i].why,
                   layout_text(context, layout));
    if (strncmp(why, expected, strlen(unsayable[i].why))) print_error("%s\n", why);
    assert_non_null(strstr(why, unsayable[i].why));
    assert_non_null(strstr(why, layout_text(context, layout)));
  }
}

// ---- Texts that are none -----------------------------------------------------------------------

static const struct {
  const char *text;
  int64_t shape[4];
  int rank;
  int begin, end; // of the caret's range
  const char *message;
} bad[] = {
    {"NCHW16x",
     {1, 2, 3, 4},
     4,
     4,
     7,
     "`16x` is a block of an axis `X` that is missing; did you mean `NCHW16c`?"},
    {"aBcd16x",
     {1, 2, 3, 4},
     4,
     4,
     7,
     "`16x` is a block of an axis `X` that is missing; did you mean `aBcd16b`?"},
    {"NCHW16C",
     {1, 2, 3, 4},
     4,
     4,
     7,
     "a block is written in lower case: `16c`; did you mean `NCHW16c`?"},
    {"NCHWc",
     {1, 2, 3, 4},
     4,
     4,
     5,
     "`c` in lower case is a block and needs a size; did you mean `NCHW16c`?"},
    {"NCHW16",
     {1, 2, 3, 4},
     4,
     4,
     6,
     "a block size needs the letter of its axis; did you mean `NCHW16c`?"},
    {"lambda n, c: [n c]",
     {2, 3},
     2,
     16,
     17,
     "expected `]`, saw `c`; did you mean `lambda n, c: [n ,c]`?"},
    {"NCHWC", {1, 2, 3, 4}, 4, 4, 5, "axis `C` is named twice; did you mean `NCHW`?"},
    {"NCHW0c", {1, 2, 3, 4}, 4, 4, 6, "a block of 0 elements; did you mean `NCHW`?"},
    {"NCHW99999999999999999999c", {1, 2, 3, 4}, 4, 4, 23, "this block size does not fit 64 bits"},
    {"NCHW", {3, 4}, 2, 0, 4, "this layout has 4 axes, the tensor 2"},
    {"NCHW of NCH", {1, 2, 3, 4}, 4, 0, 11, "the axes here are not those of `NCH`"},
    {"lambda a, b: [a, c]", {2, 3}, 2, 17, 18, "unknown axis `c`"},
    {"lambda rows, columns: [row, columns]",
     {2, 3},
     2,
     23,
     26,
     "unknown axis `row`; did you mean `rows`?"},
    {"i, i -> i", {2, 3}, 2, 3, 4, "axis `i` is named twice"},
    {"i, j -> (i + j",
     {2, 3},
     2,
     14,
     14,
     "expected `)`, saw the end of the text; did you mean `i, j -> (i + j)`?"},
    {"i, j -> i, j//0", {2, 3}, 2, 11, 15, "division by zero"},
    {"i, j -> i, j % 0", {2, 3}, 2, 11, 16, "division by zero"},
    {"i, j, k -> i", {2, 3}, 2, 0, 10, "the map has 3 axes, the tensor 2"},
    {"i -> i in [2, 3]", {2}, 1, 0, 16, "2 physical extents for 1 physical axes"},
    {"i -> i in [-2]", {2}, 1, 0, 14, "physical extent 0 is -2"},
    {"i -> i in [2]",
     {3},
     1,
     0,
     13,
     "this map leaves its physical shape [2]: [2] would be stored at [2]"},
    {"i -> i - 1",
     {3},
     1,
     0,
     10,
     "this map leaves its physical shape [2]: [0] would be stored at [-1]"},
    {"i -> i << 62",
     {3},
     1,
     0,
     12,
     "no bounds are known for physical axis 0, `i << 62`: it does not fit 64 bits"},
    {"i, j -> i % j",
     {3, 4},
     2,
     0,
     13,
     "no bounds are known for physical axis 0, `i%j`: its divisor may be 0 or less"},
    {"i -> i + 9223372036854775808", {3}, 1, 9, 28, "this number does not fit 64 bits"},
    {"(4,8:(8,1)", {4, 8}, 2, 4, 5, "expected `)`, saw `:`; did you mean `(4,8):(8,1)`?"},
    {"(4,8):(8)", {4, 8}, 2, 0, 9, "shape and strides differ in form"},
    {"(4,-8):(8,1)", {4, 8}, 2, 0, 6, "a negative extent, -8; did you mean `(4,8):(8,1)`?"},
    {"(4,8):(1@0,1)", {4, 8}, 2, 0, 13, "all strides have an `@`, or none has"},
    {"(4,8):(1@0,1@1@0)", {4, 8}, 2, 0, 17, "a part of the coordinate is a number and a tuple"},
    {"(4@0,8):(1@0,1@1)", {4, 8}, 2, 0, 7, "an extent is a number, without `@`"},
    {"(4,8):(1@64,1@1)", {4, 8}, 2, 9, 11, "a coordinate of more than 64 numbers, or 8 deep"},
    {"Sw<1,0,1> o (4,8):(1@0,1@1)", {4, 8}, 2, 0, 27, "coordinates have no swizzle, offsets have"},
    {"ArithTuple(0,0) (4,8):(1@0,1@1)", {4, 8}, 2, 16, 17, "expected `o`, saw `(`"},
    {"(4294967296,4294967296):(1,1)",
     {4294967296, 4294967296},
     2,
     0,
     29,
     "the logical size does not fit 64 bits"},
    {"((4294967296,4294967296)):((1,1))", {5}, 1, 0, 33, "this size does not fit 64 bits"},
    {"(4,8):(8,1)", {4, 9}, 2, 0, 11, "axis 1 has 8 elements here, 9 in the tensor"},
    {"(4,8):(8,-1)",
     {4, 8},
     2,
     0,
     12,
     "this map leaves its physical shape [25]: [0, 1] would be stored at [-1]"},
    {"4:4611686018427387904",
     {4},
     1,
     0,
     21,
     "no bounds are known for physical axis 0, `i0*4611686018427387904`: it does not fit 64 bits"},
    {"Sw<3,0,2> o 0 o (8,8):(8,1)",
     {8, 8},
     2,
     0,
     9,
     "a swizzle of 3 bits needs a shift of at least 3"},
    {"Sw<3,60,3> o 0 o (8,8):(8,1)", {8, 8}, 2, 0, 10, "a swizzle of bits that no offset has"},
    {"{1,0:T(8,128}", {3, 4}, 2, 12, 13, "expected `)`, saw `}`; did you mean `{1,0:T(8,128)}`?"},
    {"{1,1}", {3, 4}, 2, 3, 4, "axis 1 is named twice"},
    {"{2,0}", {3, 4}, 2, 1, 4, "axis 1 is missing from the order of 2 axes"},
    {"{1,0:T(0)}", {3, 4}, 2, 7, 8, "a tile of 0 elements"},
    {"{0:T(2,2)}", {3}, 1, 4, 8, "a tile of more axes than there are, 1"},
    {"{1,0:T(*,4)}", {3, 4}, 2, 0, 0, NULL},
    {"{1,0:T(4,*)}", {3, 4}, 2, 6, 11, "`*` merges an axis with the next, the last has none"},
    {"f32[3,4,5]{1,0}", {3, 4}, 2, 0, 15, "the shape has 3 axes, the layout 2"},
    {"{1,0:T(2,2)Q(1024)}",
     {3, 4},
     2,
     11,
     12,
     "expected `}`, saw `Q`; did you mean `{1,0:T(2,2)(1024)}`?"},
    {"{1,0:T(2)T(2)}", {3, 4}, 2, 9, 10, "this is given twice; did you mean `{1,0:T(2)(2)}`?"},
    {"{1,0:L(0)}", {3, 4}, 2, 6, 9, "a multiple of 0 elements"},
    {"{1,0:D(D)}", {3, 4}, 2, 6, 9, "1 level for 2 axes"},
    {"{1,0:D(D,C+)}",
     {3, 4},
     2,
     9,
     10,
     "axis 1 is compressed: a sparse tensor does not store every element"},
    {"{1,0:#(u32)}",
     {3, 4},
     2,
     5,
     11,
     "`#(u32)` is the type of the indices of a sparse tensor, which does not store "
     "every element"},
    {"{1,0:P((s32[4],u8[5]))}",
     {3, 4},
     2,
     5,
     22,
     "`P((s32[4],u8[5]))` is the shape of the parts of a sparse tensor, which does not store "
     "every "
     "element"},
    {"{1,0:T(2,2)SC(0:2)(1:4)}",
     {3, 4},
     2,
     11,
     18,
     "`SC(0:2)` splits an axis over several memories"},
    {"{1,0:M(256)}",
     {3, 4},
     2,
     5,
     11,
     "`M(256)` puts bytes before the elements, which are not counted in elements"},
    {"f32[?,4]{1,0}", {3, 4}, 2, 4, 5, "an axis without a bound has no extent in memory"},
    {"size=(2, 3) stride=(3,)", {2, 3}, 2, 19, 23, "1 stride for 2 axes"},
    {"size=(2, 3) stride=(-3, 1)",
     {2, 3},
     2,
     19,
     26,
     "a negative stride, -3, which PyTorch does not have; did you mean "
     "`size=(2, 3) stride=(3, 1)`?"},
    {"size=(2, 3) strid=(3, 1)",
     {2, 3},
     2,
     12,
     17,
     "expected `size`, `stride` or `storage_offset`, saw `strid`; did you mean `stride`?"},
    {"size=(2, 3)", {2, 3}, 2, 0, 11, "the stride is missing"},
    {"lane: [[1], [1]]", {4}, 1, 0, 16, "axis 0 has 2 elements here, 4 in the tensor"},
    {"lane: [[2], [4]]",
     {8},
     1,
     0,
     16,
     "no physical index holds element [1]: the bases must reach every element"},
    {"lane: [[1]], lane: [[2]]", {4}, 1, 13, 19, "`lane` is named twice"},
    {"lane: [[1, 0], [2]]", {4}, 1, 15, 18, "a basis of 1 numbers among those of 2"},
    {"S[(4, 2) : (2@lane)]", {4, 2}, 2, 11, 19, "1 stride for 2 extents"},
    {"S[(4, 2) : (2@lane, 1]",
     {4, 2},
     2,
     21,
     22,
     "expected `)`, saw `]`; did you mean `S[(4, 2) : (2@lane, 1)]`?"},
    {"S[(4, 2) : (2, 1)]",
     {3, 5},
     2,
     0,
     18,
     "the shards do not have as many elements as the tensor"},
    {"S[(4, -2) : (2, 1)]",
     {4, 2},
     2,
     1,
     9,
     "-2 is not an extent; did you mean `S[(4, 2) : (2, 1)]`?"},
    {"R[2 : 1]", {4, 2}, 2, 0, 8, "expected shards, `S[...]`"},
    {"S[4 : 1] + R[0 : 1]", {4}, 1, 12, 15, "0 is not an extent"},
    {"S[4 : 1] + S[4 : 1]", {4}, 1, 12, 13, "this is given twice"},
    {"T.ComposeLayout(3, 3, 2, S[64])",
     {64},
     1,
     0,
     31,
     "a swizzle of 3 bits needs a shift of at least 3"},
    {"T.SwizzleLayout(3, 3)", {64}, 1, 0, 21, "the swizzle's `atom_len` is missing"},
    {"T.SwizzleLayout(3, 3, 3, S[4])", {64}, 1, 25, 26, "expected `True`, saw `S`"},
    {"T.SwizzleLayout(3, 3, 3, True, 4)", {64}, 1, 31, 31, "a swizzle has no argument here"},
    {"ComposeLayout(0, 2, 3, base=S[8])", {8}, 1, 23, 27, "a swizzle has no `base`"},
    {"ComposeLayout(0, 2, 3, S[8 : 1@lane])", {8}, 1, 0, 37, "only memory can be swizzled"},
    {"", {4}, 1, 0, 0, "expected a layout, saw the end of the text"},
    {"@", {4}, 1, 0, 1, "expected a layout, saw `@`"},
};

static void test_errors(void **state) {
  (void)state;
  bool good = true;
  for (int i = 0; i < COUNT_OF(bad); i++) {
    int before = context->diags.count;
    const Layout *layout = layout_parse_static(context, bad[i].text, bad[i].shape, bad[i].rank);
    if (!bad[i].message) {
      assert_non_null(layout);
      continue;
    }
    assert_null(layout);
    assert_true(context->diags.count > before);
    const Diag *diag = &context->diags.items[before];
    bool same = !strcmp(diag->message, bad[i].message) && diag->pos.begin == bad[i].begin &&
                diag->pos.end == bad[i].end;
    if (!same)
      print_error("%s:\n  %d %d %s\n  %d %d %s\n", bad[i].text, diag->pos.begin, diag->pos.end,
                  diag->message, bad[i].begin, bad[i].end, bad[i].message);
    good = good && same;
  }
  assert_true(good);
}

// Right and wrong texts alike: no reader sees such a shape, nor does the search for suggestions.
static void test_too_many_axes(void **state) {
  (void)state;
  enum { AXES = 71 };
  static const char *const texts[] = {"lambda *i: [*i]", "*i -> *i,, 0", "NCHQ", "(2,3)", "{1,0"};
  const LayoutExpr *shape[AXES];
  int64_t extents[AXES];
  for (int i = 0; i < AXES; i++) shape[i] = layout_const(context, extents[i] = 1);
  for (int i = 0; i < 2 * COUNT_OF(texts); i++) {
    const char *text = texts[i / 2];
    LayoutSource source = layout_source(text, AXES);
    int before = context->diags.count;
    assert_null(i % 2 ? layout_parse_static(context, text, extents, AXES)
                      : layout_parse(context, &source, shape, AXES, (LayoutFacts){0}));
    assert_int_equal(context->diags.count, before + 1);
    assert_string_equal(context->diags.items[before].message, "more than 64 axes");
    assert_int_equal(context->diags.items[before].pos.end, (int)strlen(text));
    assert_null(index_map_parse(context, &source));
  }
}

// The parts of XLA's text that are not the layout are reported when they are left out.
static void test_left_out(void **state) {
  (void)state;
  const Layout *layout = layout_parse_static(context, "{1,0:T(2,2)S(1)}", (int64_t[]){3, 4}, 2);
  assert_non_null(layout);
  assert_int_equal(context->diags.count, 1);
  assert_int_equal(context->diags.items[0].severity, DIAG_WARNING);
  assert_string_equal(context->diags.items[0].message,
                      "`S(1)`, the memory space, is no part of a layout and is left out");
  assert_non_null(context->diags.items[0].pos.file);
  assert_int_equal(context->diags.items[0].pos.begin, 11);
}

// ---- Shapes that nobody gave -------------------------------------------------------------------

static const struct {
  const char *text, *shape;
  bool said;
} shapes[] = {
    {"(4,(2,3)):(8,(1,16))", "4, 6", true},
    {"f32[2,3]{0,1:T(2)}", "2, 3", true},
    {"f32[]", "", true},
    {"-> 0", "", true},
    {"size=(2, 3) stride=(3, 1)", "2, 3", true},
    {"lane: [[0, 1], [2, 0], [1, 0]]", "4, 2", true},
    {"S[(8, 4) : (4@lane, 1)]", "8, 4", true},
    {"NHWC16c", "N, C, H, W", false},
    {"aBc8b", "A, B, C", false},
    {"{0,1}", "I0, I1", false},
    {"lambda row, col: [col, row]", "ROW, COL", false},
    {"i, j; r=2 -> i, j, r @device", "I, J", false},
    {"n, N, M, x -> n, N, M, x", "n_, n__, m, X", false},
    {"k, d, e -> k, d, e", "16*K16, 64, E", false},
};

static void test_shapes(void **state) {
  (void)state;
  LayoutConditions conditions;
  LayoutSource where[] = {layout_source("D == 64", -1), layout_source("K == 16*K16", -1)};
  assert_true(layout_conditions_parse(context, where, COUNT_OF(where), &conditions));
  for (int i = 0; i < COUNT_OF(shapes); i++) {
    LayoutSource source = layout_source(shapes[i].text, -1);
    source.definitions = conditions.definitions;
    source.definition_count = conditions.definition_count;
    int rank;
    bool said;
    Text text = text_new(&context->arena);
    const LayoutExpr *const *shape = layout_shape_of(context, &source, &rank, &said);
    assert_non_null(shape);
    for (int j = 0; j < rank; j++)
      text_printf(&text, "%s%s", j ? ", " : "", layout_expr_text(context, shape[j], NULL, 0));
    assert_string_equal(text_string(&text), shapes[i].shape);
    assert_int_equal(said, shapes[i].said);
    assert_non_null(layout_parse(context, &source, shape, rank, conditions.facts));
  }
  LayoutSource star = layout_source("*i, c -> *i, c", -1);
  assert_null(layout_shape_of(context, &star, &(int){0}, &(bool){false}));
}

// Conditions and the fact about C that they say; least -1 where they are refused.
static const struct ConditionCase {
  const char *text;
  int64_t least, most, multiple;
} condition_cases[] = {
    {"C % 16 == 0", 1, 0, 16},       {"2*C + 3 >= 4*C - 61", 1, 32, 1},
    {"(2*C) % 6 == 0", 1, 0, 3},     {"C - K + K > 9", 10, 0, 1},
    {"(C - C)*K + C >= 3", 3, 0, 1}, {"C*K >= 3", -1, 0, 0},
    {"C + K >= 3", -1, 0, 0},        {"C*9223372036854775807 >= 2 - C*2", -1, 0, 0},
    {"-C >= 3", -1, 0, 0},
};

static void test_conditions(void **state) {
  (void)state;
  for (int i = 0; i < COUNT_OF(condition_cases); i++) {
    const struct ConditionCase *c = &condition_cases[i];
    LayoutSource source = layout_source(c->text, -1);
    LayoutConditions conditions;
    bool good = layout_conditions_parse(context, &source, 1, &conditions);
    assert_int_equal(good, c->least >= 0);
    if (!good) continue;
    LayoutFact fact = {.min = 1, .multiple = 1};
    for (int k = 0; k < conditions.facts.count; k++)
      if (!strcmp(conditions.facts.items[k].symbol, "C")) fact = conditions.facts.items[k];
    assert_int_equal(fact.min, c->least);
    assert_int_equal(fact.max, c->most);
    assert_int_equal(fact.multiple, c->multiple);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_texts),  TEST(test_table),      TEST(test_unsayable), TEST(test_errors),
      TEST(test_shapes), TEST(test_conditions), TEST(test_left_out),  TEST(test_too_many_axes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
