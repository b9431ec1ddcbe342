from onepass.engine.rows cimport RowRule
from onepass.engine.step cimport LearningState

cdef enum:
    LOST = -1
    STOPPED = -2
    WRONG = -3

cpdef Py_ssize_t block_scalars(
    double[:, ::1] products, const double[::1] growth, const double[::1] terms, double[::1] pre_mean, const double[::1] y,
    RowRule rule, LearningState state, double cancelled, double[::1] scores, double[::1] informations,
    double[::1, :] mixing, double[:, ::1] noted, double[:, ::1] out, double[:, ::1] sites
)
cpdef Py_ssize_t block_noise(
    LearningState state, RowRule rule, const double[:, ::1] noted, const double[::1, :] gains, const double[::1] scores,
    double[::1] mean, double[:, ::1] out
)
