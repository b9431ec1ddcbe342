from onepass.engine.matches cimport CompiledLikelihood
from onepass.engine.noise cimport AllRows, Response
from onepass.engine.one_row cimport OneRow
from onepass.engine.outliers cimport Trust
from onepass.engine.step cimport PerceptronProgress, Site

cimport cython

ctypedef fused Real:
    float
    double

ctypedef fused Index:
    int
    long long

# A prior's mean and the lower triangle of its covariance's root, row after row; NULL for none.
cdef struct Prior:
    Py_ssize_t p
    bint coupled  # whether weights are correlated
    const double* values

cdef struct Row:
    const double* x
    const double* x_var  # NULL where the inputs are certain
    Py_ssize_t d
    double y
    Site* site  # NULL where none is kept

# Whether a row was learned, or would have cost the covariance its digits; mean and variance of its pre-activation.
cdef struct Seen:
    bint learned
    bint digits_lost
    double pre_mean
    double pre_var

@cython.final
cdef class Rows:
    cdef readonly object X, y, X_var, record, sites
    cdef const double[:, ::1] inputs, input_vars
    cdef const double[::1] targets
    cdef double[:, ::1] records, kept_sites
    cdef Row row(self, Py_ssize_t i) noexcept nogil
    cdef bint finish(self, Py_ssize_t i, PerceptronProgress state, Seen seen, double noise, double noise_weight) noexcept nogil

@cython.final
cdef class PerceptronRule:
    cdef readonly CompiledLikelihood likelihood
    cdef readonly int bias
    cdef readonly Py_ssize_t period
    cdef readonly double keep
    cdef const double[:, ::1] priors
    cdef readonly const double[::1] centre, precisions
    cdef bint coupled
    cdef Prior prior(self, Py_ssize_t number, Py_ssize_t p) noexcept nogil

cdef class Wander:
    cdef readonly double kept
    cdef const double[::1] added

cdef class RowLearner(OneRow):
    cdef PerceptronRule rule
    cdef PerceptronProgress state, saved_state
    cdef double[::1] mean, scratch, saved
    cdef Prior prior
    cdef double[:, ::1] root
    cdef bint call(self, const double[::1] x, double y) noexcept nogil
    cdef bint learn_row(self, const Row* row) noexcept nogil
    cdef double variance(self, const double[::1] x) noexcept nogil

cdef class DenseRowLearner(RowLearner):
    cdef Wander wander
    cdef double cancelled
    cdef PerceptronProgress before

cdef Seen learn_row_root(
    const Row* row, PerceptronRule rule, PerceptronProgress state, Real* mean, Real* root, bint packed, const Prior* prior,
    bint forgets, Real* scratch
) noexcept nogil
cdef Seen learn_row_dense(
    const Row* row, PerceptronRule rule, PerceptronProgress state, PerceptronProgress before, Wander wander, double cancelled, Real* mean,
    Real* cov, Real* scratch
) noexcept nogil
cdef Py_ssize_t scratch_size(PerceptronRule rule, Py_ssize_t p) noexcept nogil
cdef double _root_input_var(
    const Row* row, Py_ssize_t bias, Py_ssize_t p, const Real* mean, const Real* root, bint packed
) noexcept nogil
cdef void forget_root(Prior prior, double keep, Real* mean, Real* root, bint packed, Real* space) noexcept nogil
cdef void _relative_root(
    Prior prior, const Real* mean, const Real* root, bint packed, Real* ratio, Real* pull, Real* space
) noexcept nogil
cdef void _subtract_rows(Py_ssize_t p, Py_ssize_t i, const Real* factor, Real* root, bint packed) noexcept nogil
cdef void respond_once(
    Py_ssize_t p, double var, const Real* gain, const Real* mean, PerceptronRule rule, Prior prior, Response* response
) noexcept nogil
cdef void _respond_root(
    Prior prior, Py_ssize_t steps, const Real* coords, double var, const Real* mean, const Real* root, bint packed,
    Response* response
) noexcept nogil
cdef void _reweigh_root(
    Prior prior, PerceptronProgress state, Real* mean, Real* root, bint packed, Real* space
) noexcept nogil
cdef void rescale_root(
    Prior prior, Trust trust, double* mean, double* root, bint packed, double* space
) noexcept nogil
cdef AllRows _ask_root(Prior prior, const Real* mean, const Real* root, bint packed, double* memory) noexcept nogil
cdef const double* _prior_row(Prior prior, Py_ssize_t j) noexcept nogil
cdef void _whitened_gap(Prior prior, const Real* mean, double* gap) noexcept nogil
cdef void _whiten(Prior prior, double* vector) noexcept nogil
cdef void _unwhiten(Prior prior, double* vector) noexcept nogil
cdef void _factor_row(
    Py_ssize_t i, double keep, double fade, const Real* ratio, Real* factor, Real* pivot, Real* s
) noexcept nogil
cdef void _copy_belief(Py_ssize_t p, Real* mean, Real* root, bint packed, Real* saved, bint back) noexcept nogil
cdef void _copy(Py_ssize_t n, Real* values, Real* saved, bint back) noexcept nogil
cdef double _wandered(double variance, double kept, double added, double n) noexcept nogil
cdef bint _forgets_now(PerceptronRule rule, PerceptronProgress state) noexcept nogil
