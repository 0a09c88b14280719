# SPDX-License-Identifier: Apache-2.0
"""Instruments of passes with TVM's names: PassContext(instruments=[...]) calls their methods around each pass."""
import functools
import os
import re
import threading
import time


class PassInstrument:
    """An instrument whose methods do nothing; classes of their own replace them.

    enter_pass_ctx(), exit_pass_ctx(): at the ends of the `with PassContext(...)`
    should_run(module, info): does the pass run?
    run_before_pass(module, info), run_after_pass(module, info)"""

    def enter_pass_ctx(self):
        pass

    def exit_pass_ctx(self):
        pass

    def should_run(self, module, info):
        return True

    def run_before_pass(self, module, info):
        pass

    def run_after_pass(self, module, info):
        pass


def pass_instrument(pi_cls=None):
    """Makes a class with some of the methods of PassInstrument one of these."""
    def make(cls):
        @functools.wraps(cls, updated=())
        class Instrument(cls, PassInstrument):
            pass
        return Instrument
    return make if pi_cls is None else make(pi_cls)


class PassTimingInstrument(PassInstrument):
    """Measures the passes; render(), inside of the `with`, is a text of the times."""

    def __init__(self):
        self._local = threading.local()

    def enter_pass_ctx(self):
        self._local.times, self._local.open = [], []

    def exit_pass_ctx(self):
        self._local.times, self._local.open = [], []

    def run_before_pass(self, module, info):
        row = [info.name, 0.0, len(self._local.open)]
        self._local.times.append(row)
        self._local.open.append((row, time.perf_counter()))

    def run_after_pass(self, module, info):
        row, begin = self._local.open.pop()
        row[1] = time.perf_counter() - begin

    def render(self):
        times = getattr(self._local, "times", [])
        total = sum(seconds for _, seconds, depth in times if depth == 0) or 1.0
        return "".join(f"{'  ' * depth}{name}: {seconds * 1e6:.0f}us ({seconds / total * 100:.2f}%)\n"
                       for name, seconds, depth in times)


class PrintBeforeAll(PassInstrument):
    """Prints the module before each pass."""

    def run_before_pass(self, module, info):
        print(f"Before Running Pass: {info.name}\n{module.script()}")


class PrintAfterAll(PassInstrument):
    """Prints the module after each pass."""

    def run_after_pass(self, module, info):
        print(f"After Running Pass: {info.name}\n{module.script()}")


class PassPrintingInstrument(PassInstrument):
    """Prints the module before and after the passes of these names."""

    def __init__(self, print_before_pass_names=(), print_after_pass_names=()):
        self.before, self.after = set(print_before_pass_names), set(print_after_pass_names)

    def run_before_pass(self, module, info):
        if info.is_named_in(self.before):
            print(f"Print IR before: {info.name}\n{module.script()}")

    def run_after_pass(self, module, info):
        if info.is_named_in(self.after):
            print(f"Print IR after: {info.name}\n{module.script()}")


class DumpIR(PassInstrument):
    """Writes the module after each pass to a file of a folder, with the pass's number and name. refresh:
    removes earlier ones."""

    def __init__(self, dump_dir, refresh=False):
        self.folder, self.count = os.fspath(dump_dir), 0
        os.makedirs(self.folder, exist_ok=True)
        for name in os.listdir(self.folder) if refresh else ():
            if re.fullmatch(r"\d{3}_.*\.py", name):
                os.remove(os.path.join(self.folder, name))

    def run_after_pass(self, module, info):
        name = re.sub(r"\W+", "_", info.name)
        with open(os.path.join(self.folder, f"{self.count:03}_{name}.py"), "w", encoding="utf-8") as file:
            file.write(module.script() + "\n")
        self.count += 1
