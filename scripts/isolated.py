# SPDX-License-Identifier: Apache-2.0
"""Calls a function in processes of their own, so that a call which crashes or hangs has an outcome
and the other calls are still made. A process makes many calls, so that each costs little."""
import collections
import json
import os
import selectors
import signal
import tempfile
import time

CHUNK = 40


class _Worker:
    """A child process that makes some of the calls and reports each result over a pipe."""

    def __init__(self, function, items, numbers, slowest_s):
        self.numbers, self.text, self.done, self.slowest_s = list(numbers), b"", 0, slowest_s
        self.deadline = time.monotonic() + slowest_s
        self.log = tempfile.TemporaryFile()
        self.pipe, write = os.pipe()
        self.pid = os.fork()
        if self.pid:
            os.close(write)
            return
        status = 1
        try:
            os.dup2(self.log.fileno(), 1)
            os.dup2(self.log.fileno(), 2)
            os.close(self.pipe)
            for number in self.numbers:
                text = json.dumps(function(items[number])).encode() + b"\n"
                while text:
                    text = text[os.write(write, text):]
            status = 0
        finally:
            os._exit(status)

    def read(self):
        """(number, value) of calls that ended; None at the end of all."""
        data = os.read(self.pipe, 1 << 16)
        if not data:
            return None
        *lines, self.text = (self.text + data).split(b"\n")
        numbers = self.numbers[self.done:self.done + len(lines)]
        self.done += len(lines)
        if lines:
            self.deadline = time.monotonic() + self.slowest_s
        return list(zip(numbers, map(json.loads, lines)))

    def end(self):
        """The way in which the process ended, and the numbers of the calls that it did not make."""
        os.close(self.pipe)
        _, status = os.waitpid(self.pid, 0)
        self.log.seek(0)
        tail = self.log.read()[-2000:].decode(errors="replace")
        self.log.close()
        how = (signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status)
               else f"exit status {os.WEXITSTATUS(status)}")
        return f"{how}\n{tail}".strip(), self.numbers[self.done:]


def call_all(function, items, processes=2, slowest_s=300):
    """Yields (number, value, None) for each item whose call gave a value that JSON can hold, in any
    order, and (number, None, how it ended) for one whose call ended its process or took longer."""
    waiting, workers = collections.deque(), set()
    for start in range(0, len(items), CHUNK):
        waiting.append(range(start, min(start + CHUNK, len(items))))
    selector = selectors.DefaultSelector()
    while waiting or workers:
        while waiting and len(workers) < processes:
            worker = _Worker(function, items, waiting.popleft(), slowest_s)
            workers.add(worker)
            selector.register(worker.pipe, selectors.EVENT_READ, worker)
        for key, _ in selector.select(timeout=1):
            worker = key.data
            found = worker.read()
            for number, value in found or []:
                yield number, value, None
            if found is not None:
                continue
            selector.unregister(worker.pipe)
            workers.remove(worker)
            how, left = worker.end()
            if left:
                yield left[0], None, how
            if left[1:]:
                waiting.appendleft(left[1:])
        for worker in workers:
            if time.monotonic() > worker.deadline:
                os.kill(worker.pid, signal.SIGKILL)
