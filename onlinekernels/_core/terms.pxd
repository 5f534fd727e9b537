"""Functions that are sums over terms: a kernel's program over the rows of a dictionary, and coefficients."""
cimport cython
from onlinekernels._core.coefficients cimport Coefficients
from onlinekernels._core.dictionary cimport Dictionary, Table
from onlinekernels._core.function cimport Function
from onlinekernels._core.kernels cimport Program
from onlinekernels._core.points cimport Objects
from onlinekernels._core.workspace cimport Workspace


cdef class Terms(Function):
    cdef readonly Dictionary dictionary
    cdef readonly Coefficients terms

    cdef const double* values(self, Workspace w, Py_ssize_t i) noexcept nogil
    cdef double slot_values(self, Workspace w, Py_ssize_t slot) noexcept nogil
    cdef void newcomers_values(self, Workspace w, Py_ssize_t slot, double own, double* out) noexcept nogil
    cdef void keep_facts(self, Workspace w, Py_ssize_t i, Py_ssize_t slot) noexcept nogil


@cython.final
cdef class CompiledTerms(Terms):
    cdef readonly Program program
    cdef readonly Table facts           # (n_facts, capacity): what the kernel keeps with each point
    cdef bint evaluates_slots           # whether `evaluate_slot` will be needed

    cdef int make_slot_room(self, Workspace w, Py_ssize_t room) except -1
    cdef int add_up_by_slots(self, Workspace w, int last) except -1


@cython.final
cdef class ObjectTerms(Terms):
    cdef readonly object kernel         # Python kernel on objects
    cdef Objects objects                # the dictionary

    cdef row(self, x)
