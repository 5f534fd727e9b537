"""A piece: consecutive rows that are learned or evaluated in one loop without the interpreter, as a dictionary opens them."""


cdef class Piece(Memory):
    """Some rows of a call, and what they have to do with the points of a dictionary and with each other."""

    cdef void begin(self, Py_ssize_t rows) noexcept:
        """So many rows, about which nothing is known yet. O(1)."""
        self.rows, self.slot, self.joins = rows, -1, False
        self.x = NULL
        self.start, self.index, self.value = NULL, NULL, NULL
        self.square = self.tilt = self.l1 = self.own_l1 = NULL
        self.inner = self.own_inner = NULL
        self.first = self.stride = 0
        self.turned = self.narrow = False
        self.values = NULL

    cdef void let_go(self) noexcept:
        """The call is over: hold on to nothing that was its own. O(1)."""
        self.source = self.example = self.values_array = None
        if self.under is not None:
            self.under.let_go()


cdef Py_ssize_t apart(Py_ssize_t width) noexcept:
    """A row length of an odd number of cache lines, so that a column spreads over the whole cache."""
    return 16 * (((width + 15) // 16) | 1)
