"""What threads and forks have to do with models."""

cdef long long generation       # forks between the first process and this one
