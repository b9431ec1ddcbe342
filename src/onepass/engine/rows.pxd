from onepass.engine.matches cimport CompiledLikelihood
from onepass.engine.noise cimport AllRows, Response
from onepass.engine.one_row cimport OneRow
from onepass.engine.outliers cimport Trust
from onepass.engine.step cimport LearningState

ctypedef fused Real:
    float
    double

ctypedef fused Index:
    int
    long long

cdef class RowRule:
    cdef readonly CompiledLikelihood likelihood
    cdef readonly int bias
    cdef readonly Py_ssize_t period
    cdef readonly double keep
    cdef const double[:, ::1] priors
    cdef readonly const double[::1] centre, precisions
    cdef bint coupled

cdef class Wander:
    cdef readonly double kept
    cdef const double[::1] added

cdef struct Seen:
    bint learned
    bint digits_lost
    double pre_mean
    double pre_var

cdef class RowLearner(OneRow):
    cdef RowRule rule
    cdef LearningState state, saved_state
    cdef double[::1] mean, scratch, saved
    cdef double[:, ::1] root
    cdef bint call(self, const double[::1] x, double y) noexcept nogil
    cdef bint learn_row(self, const double[::1] x, double y) noexcept nogil
    cdef double variance(self, const double[::1] x) noexcept nogil
    cdef tuple project(self, const double[::1] x)

cdef class DenseRowLearner(RowLearner):
    cdef Wander wander
    cdef double cancelled
    cdef LearningState before

cdef Seen learn_row_root(
    const double* x, const double* x_var, Py_ssize_t d, double y, RowRule rule, LearningState state,
    Real* mean, Real* root, bint packed, const double* prior, bint forgets, Real* scratch, double* site
) noexcept nogil
cdef Seen learn_row_dense(
    const double* x, const double* x_var, Py_ssize_t d, double y, RowRule rule, LearningState state,
    LearningState before, Wander wander, double cancelled, Real* mean, Real* cov, Real* scratch, double* site
) noexcept nogil
cdef Py_ssize_t scratch_size(RowRule rule, Py_ssize_t p) noexcept nogil
cdef void forget_root(
    Py_ssize_t p, double keep, bint coupled, const double* prior, Real* mean, Real* root, bint packed, Real* space
) noexcept nogil
cdef void _respond_once(
    Py_ssize_t p, double var, const Real* gain, const Real* mean, RowRule rule, const double* prior, Response* response
) noexcept nogil
cdef void respond_root(
    Py_ssize_t p, Py_ssize_t steps, bint coupled, const double* prior, const Real* coords, double var, const Real* mean,
    const Real* root, bint packed, Response* response
) noexcept nogil
cdef void reweigh_root(
    Py_ssize_t p, bint coupled, const double* prior, LearningState state, Real* mean, Real* root, bint packed, Real* space
) noexcept nogil
cdef void rescale_root(
    Py_ssize_t p, const double* prior, Trust trust, double* mean, double* root, bint packed, double* space
) noexcept nogil
cpdef void rescaled(const double[::1] prior, Trust trust, double[::1] mean, double[:, ::1] root)
cdef AllRows _ask_root(
    Py_ssize_t p, bint coupled, const double* prior, const Real* mean, const Real* root, bint packed, double* memory
) noexcept nogil
cdef void _whitened_gap(
    Py_ssize_t p, bint coupled, const double* prior, const Real* mean, double* gap
) noexcept nogil
cdef void _whiten(Py_ssize_t p, bint coupled, const double* prior, double* vector) noexcept nogil
cdef void _unwhiten(Py_ssize_t p, bint coupled, const double* prior, double* vector) noexcept nogil
cdef void _factor_row(
    Py_ssize_t i, double keep, double fade, const Real* ratio, Real* factor, Real* pivot, Real* s
) noexcept nogil
cdef void _store(Py_ssize_t p, const Real* mean, const Real* root, bint packed, Real* saved) noexcept nogil
cdef void _restore(Py_ssize_t p, Real* mean, Real* root, bint packed, const Real* saved) noexcept nogil
cdef double _wandered(double variance, double kept, double added, double n) noexcept nogil
cdef bint _forgets_now(RowRule rule, LearningState state) noexcept nogil
cdef bint _load(Real* x, const double* row, Py_ssize_t d, int bias) noexcept nogil
cpdef Py_ssize_t rows_root(
    const double[:, ::1] X, const double[:, ::1] X_var, const double[::1] y, RowRule rule, LearningState state,
    Real[::1] mean, Real[:, ::1] root, bint forgets, double[:, ::1] out, double[:, ::1] sites
)
cpdef tuple rows_dense(
    const double[:, ::1] X, const double[:, ::1] X_var, const double[::1] y, RowRule rule, LearningState state,
    Wander wander, double cancelled, Real[::1] mean, Real[::1, :] cov, double[:, ::1] out,
    double[:, ::1] sites
)
cpdef Py_ssize_t rows_diagonal(
    const double[:, ::1] X, const double[:, ::1] X_var, const double[::1] y, RowRule rule, LearningState state,
    Wander wander, Real[::1] mean, Real[::1] variance, double[:, ::1] out
)
cpdef Py_ssize_t rows_sparse(
    const double[::1] data, const Index[::1] indices, const Index[::1] indptr, const double[::1] y, RowRule rule,
    LearningState state, Wander wander, Real[::1] mean, Real[::1] variance, double[:, ::1] out
)
