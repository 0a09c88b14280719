# SPDX-License-Identifier: Apache-2.0
"""Targets as attributes of functions, with TVM's names. A target is kept, printed and compared; what code
is made for is the argument `target` of pleat.build."""
import json
import threading
import types

_local = threading.local()


class Target:
    """A kind, such as "llvm" or "cuda", and its options, as text ("llvm -mcpu=znver4"), JSON or a
    dictionary with the key "kind"; `host` is the target of the code that calls it."""

    def __init__(self, target, host=None):
        given = target.options if isinstance(target, Target) else _options(target)
        host = given.pop("host", None) if host is None else host
        self.options = dict(given)
        self.host = host if host is None or isinstance(host, Target) else Target(host)

    @property
    def kind(self):
        return types.SimpleNamespace(name=self.options["kind"])

    @property
    def attrs(self):
        """The options without the kind."""
        return {key: value for key, value in self.options.items() if key != "kind"}

    def with_host(self, host):
        return Target(self.options, host)

    def export(self):
        """The target as a dictionary."""
        return {**self.options, **({"host": self.host.export()} if self.host else {})}

    @staticmethod
    def current(allow_none=True):
        """The target of the innermost `with`, or None."""
        stack = getattr(_local, "stack", None)
        if not stack and not allow_none:
            raise ValueError("there is no `with Target(...)` around this")
        return stack[-1] if stack else None

    def __enter__(self):
        if not hasattr(_local, "stack"):
            _local.stack = []
        _local.stack.append(self)
        return self

    def __exit__(self, *error):
        _local.stack.pop()

    def __eq__(self, other):
        return isinstance(other, Target) and self.export() == other.export()

    def __hash__(self):
        return hash(str(self))

    def __str__(self):
        return json.dumps(self.export(), sort_keys=True)

    def __repr__(self):
        return f"Target({self.__script__()[9:-1]})"

    def __script__(self):
        return f"T.target({', '.join(map(_argument, filter(None, (self, self.host))))})"


def _argument(target):
    return repr(target.options["kind"] if len(target.options) == 1 else target.options)


def _options(target):
    if isinstance(target, dict):
        return dict(target)
    if target.lstrip().startswith("{"):
        return json.loads(target)
    kind, *words = target.split()
    pairs = (word.lstrip("-").partition("=") for word in words)
    return {"kind": kind, **{key: value if equals else 1 for key, equals, value in pairs}}
