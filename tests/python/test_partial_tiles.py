# SPDX-License-Identifier: Apache-2.0
"""Loops over partial tiles of several axes that are stored as one run in parallel where their elements
are proved to be apart."""
import pytest
from built import skip_sanitized

skip_sanitized()
pytest.importorskip("pleat")
from pleat import tir  # noqa: E402
from pleat.script import tir as T  # noqa: E402
from pleat.tir.schedule import ScheduleError  # noqa: E402


@pytest.mark.parametrize("columns, apart", [(7, True), (8, False)])
def test_partial_tiles_of_two_axes_that_are_stored_as_one(columns, apart):
    """Rows and columns in tiles of 3 and 2 are one index; with an eighth column rows share elements."""
    @T.prim_func
    def copy(A: T.Buffer((7, 8), "float32"), B: T.Buffer((50,), "float32")):
        for y0, y1, x0, x1 in T.grid(3, 3, 4, 2):
            with T.block("copy"):
                T.where(y0 * 3 + y1 < 7 and x0 * 2 + x1 < columns)
                v = T.axis.S(50, (y0 * 3 + y1) * 7 + (x0 * 2 + x1))
                B[v] = A[y0 * 3 + y1, x0 * 2 + x1]
    sch = tir.Schedule(copy)
    rows = sch.get_loops(sch.get_block("copy"))[0]
    if apart:
        sch.parallel(rows)
    else:
        with pytest.raises(ScheduleError, match="not proved to be independent"):
            sch.parallel(rows)
