# SPDX-License-Identifier: Apache-2.0
"""Nodes as the tables that pleat_module_nodes writes and pleat_module_make reads (pleat/tir.h)."""
import json
import math

from pleat._library import _lib, _owned_text, ffi, take_messages
from pleat._request import check_status
from pleat.ir._module import Op, nodes_of, sources_of
from pleat.ir.op import is_registered
from pleat.tir.elements import Elements
from pleat.tir.nodes import KINDS, NAMES, Buffer, Node, PointerType, PrimFuncNode, Var
from pleat.tir.scopes import closed_forms, is_open, parts_of
from pleat.tir.stmt_functor import post_ordered


def _value(field, made):
    if isinstance(field, dict):
        if field.keys() == {"node"}:
            return made[field["node"]]
        return {name: _value(item, made) for name, item in field.items()}
    return [_value(item, made) for item in field] if isinstance(field, list) else field


def _read_table(handle):
    """The table of a module, and its nodes."""
    table, made = nodes_of(handle), []
    read_with = object(), sources_of(handle)
    for record in table["nodes"]:
        fields = {name: _value(item, made) for name, item in record.items() if name != "type"}
        made.append(KINDS[record["type"]].read(fields))
        if isinstance(made[-1], (Buffer, Var)):
            made[-1].read_with = read_with
    return table, made


def function_nodes(handle):
    """The nodes of all tensor programs of a module by their names."""
    table, made = _read_table(handle)
    return {name: made[item["node"]] for name, item in table["functions"].items()}


def module_attributes(handle):
    """The attributes of a module by their names."""
    table, made = _read_table(handle)
    return with_targets({name: _value(item, made) for name, item in table["attrs"].items()})


def _plain(value):
    """The text, dictionary or list that nodes in a target stand for."""
    kind = _kind_name(value) if isinstance(value, Node) else None
    if kind == "Map":
        parts = list(map(_plain, value.fields["fields"]))
        return dict(zip(parts[::2], parts[1::2]))
    if kind == "Array":
        return list(map(_plain, value.fields["fields"]))
    if kind is None or "value" not in value.fields:
        return None if kind == "None" else value
    return bool(value.value) if value.dtype == "bool" else value.value


def _target_of(value):
    """The pleat.target.Target for which a node stands; another value, and a target without a kind, as it is."""
    from pleat.target import Target
    if not isinstance(value, Node) or getattr(value, "op", None) != "T.target":
        return value
    first, *host = map(_plain, value.args)
    is_kind = first.split() if isinstance(first, str) else "kind" in first
    return Target(first, *host) if is_kind else value


def with_targets(attrs):
    """The attributes with targets as pleat.target.Target."""
    return {name: _target_of(value) for name, value in attrs.items()}


def _with_nodes(attrs):
    """The attributes with nodes for targets."""
    from pleat.script._parse import parse
    from pleat.target import Target
    given = {name: value for name, value in attrs.items() if isinstance(value, Target)}
    if not given:
        return attrs
    texts = ", ".join(f"{name!r}: {value.__script__()}" for name, value in given.items())
    handle = parse("@I.ir_module\nclass Module:\n    I.module_attrs({" + texts + "})\n")
    table, made = _read_table(handle)
    return {**attrs, **{name: _value(table["attrs"][name], made) for name in given}}


def _field(value, numbers):
    if isinstance(value, Node):
        return {"node": numbers[id(value)]}
    if isinstance(value, Elements):
        return value.in_base64()
    if isinstance(value, (list, tuple)):
        return [_field(item, numbers) for item in value]
    if isinstance(value, dict) and any(isinstance(key, Node) for key in value):
        return [_field(item, numbers) for item in value.items()]
    if isinstance(value, dict):
        return {str(key): _field(item, numbers) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if isinstance(value, int) and value >= 2**63:
        return value - 2**64
    if isinstance(value, Op) and is_registered(value):
        return f"registered.{value.partition('.')[2]}"
    return value


def _kind_name(node):
    """The type of a node in tables: that of the first of its classes which is a kind."""
    return next(NAMES[kind] for kind in type(node).__mro__ if kind in NAMES)


def written_nodes(fields, key_of=None):
    """Fields with nodes, or dictionaries and lists of them, as a table: "nodes", and the fields with their
    numbers. key_of gives the keys of variables and buffers."""
    roots = [node for value in fields.values() for node in parts_of(value)]
    forms = closed_forms(roots)
    order = list(post_ordered([forms.get(id(root), root) for root in roots], lambda node: parts_of(node.fields)))
    numbers = {id(node): i for i, node in enumerate(order)}
    numbers.update({old: numbers[id(new)] for old, new in forms.items() if id(new) in numbers})
    records = []
    for node in order:
        record = {name: _field(value, numbers) for name, value in node.fields.items()}
        if isinstance(node, Var) and isinstance(node.type_annotation, PointerType):
            record.update(element_type=str(node.type_annotation.element_type),
                          storage_scope=node.type_annotation.storage_scope)
        if key_of and isinstance(node, (Buffer, Var)):
            record["key"] = key_of(node)
        records.append({**record, "type": _kind_name(node)})
    return {"nodes": records, **{name: _field(value, numbers) for name, value in fields.items()}}


def read_nodes(table, known):
    """The fields of a table, with its nodes. A key of a node is its number in the list `known`."""
    made = []
    for record in table["nodes"]:
        fields = {name: _value(item, made) for name, item in record.items() if name != "type"}
        made.append(known[record["key"]] if "key" in record else KINDS[record["type"]].read(fields))
    return {name: _value(item, made) for name, item in table.items() if name != "nodes"}


def text_of_node(node):
    """The TVMScript of an expression or statement, which may be a part of a program; None where it has none."""
    text, messages = ffi.new("char **"), ffi.new("PleatMessages **")
    table = json.dumps(written_nodes({"node": node})).encode()
    status = _lib.pleat_node_print(table, text, messages)
    take_messages(messages[0])
    return None if status else _owned_text(text[0]).rstrip("\n")


def make_module(functions):
    """The module of the library for nodes of functions by their names; it is checked."""
    table = written_nodes({"functions": functions})
    module, messages = ffi.new("PleatModule **"), ffi.new("PleatMessages **")
    status = _lib.pleat_module_make(json.dumps(table).encode(), module, messages)
    check_status(status, messages)
    return ffi.gc(module[0], _lib.pleat_module_free)


def make_function(params, body, ret_type, buffer_map, attrs):
    """The module that has a function of these nodes, which is private without a name among its attributes. A
    buffer as a parameter stands for a handle; the parameter of another function brings its buffer."""
    buffers, variables, attrs = dict(buffer_map or {}), [], dict(attrs or {})
    for param in params:
        param = param.asobject() if hasattr(param, "asobject") else param
        if isinstance(param, Buffer):
            variables.append(Var(f"p_{param.name}", "handle"))
            buffers[variables[-1]] = param
        else:
            variables.append(param)
            if getattr(param, "buffer", None) is not None:
                buffers.setdefault(param, param.buffer)
    name = str(attrs.get("global_symbol", "main"))
    if "global_symbol" not in attrs:
        attrs["private"] = True
    is_newer = any(map(is_open, post_ordered([body], lambda one: parts_of(one.fields))))
    node = PrimFuncNode(name, variables, body, ret_type, buffers, _with_nodes(attrs), True, is_newer)
    return make_module({name: node})
