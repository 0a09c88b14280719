# RUN: pleat opt %s
# Strings that TVM prints in a table before the program, as with script(show_meta=True). The last
# one is not in the table, so its name stays.
metadata = tvm.ir.load_json("""{
  \"root_index\": 5,
  \"nodes\": [
    {\"type\": \"ffi.String\", \"data\": \"ir.StringImm\"},
    {\"type\": \"ffi.String\", \"data\": \"called as\\n  `main(n)`\"},
    {\"type\": \"ir.StringType\", \"data\": {}},
    {\"type\": \"ir.StringImm\", \"data\": {\"ty\": 2, \"value\": 1}},
    {\"type\": \"ffi.Array\", \"data\": [3]},
    {\"type\": \"ffi.Map\", \"data\": [0, 4]}
  ]
}""")
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def main(A: T.Buffer((4,), "int32"), n: T.int32):
    T.func_attr({"note": metadata["ir.StringImm"][0]})
    assert n < 4, ("ValueError", ["n is ", n, metadata["ir.StringImm"][0]])
    assert n > 1, ("ValueError", [metadata["ir.StringImm"][1], n])
    T.call_packed("show", metadata["ir.StringImm"][0])
    A[n] = 1
