# SPDX-License-Identifier: Apache-2.0
"""Temporary folders."""
import os
import tempfile


class TempDirectory:
    """A folder, `path`, that is removed with this object, by remove(), or at the end of a `with`."""

    def __init__(self, custom_path=None, keep_for_debug=False):
        self._folder = None
        if custom_path:
            os.makedirs(custom_path, exist_ok=True)
            self.path = os.fspath(custom_path)
        elif keep_for_debug:
            self.path = tempfile.mkdtemp(prefix="pleat-")
        else:
            self._folder = tempfile.TemporaryDirectory(prefix="pleat-")
            self.path = self._folder.name

    def remove(self):
        """Removes the folder, unless it was given or is kept."""
        if self._folder:
            self._folder.cleanup()

    def relpath(self, name):
        """The path of a file in the folder."""
        return os.path.join(self.path, name)

    temp_dir = property(lambda self: self.path)

    def listdir(self):
        """The names of the files in the folder."""
        return os.listdir(self.path)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.remove()


def tempdir(custom_path=None, keep_for_debug=False):
    """A TempDirectory; with custom_path that folder, which stays."""
    return TempDirectory(custom_path, keep_for_debug)
