from onepass.engine.vector_matches cimport NetworkProgress, VectorLikelihood, VectorMatch

cdef struct Peak:
    double u
    double sharpness

cdef struct Lattice:
    double u
    double scale
    double shape
    double low
    double high
    Py_ssize_t count
    double top
    double first
    double total
    double drift

cdef class CategoricalOutputs(VectorLikelihood):
    cdef double match_two(self, const double* mean, const double* cov, Py_ssize_t label, VectorMatch out) noexcept nogil
    cdef double match_separate_once(
        self, const double* mean, const double* cov, const double* target, NetworkProgress state, VectorMatch out
    ) noexcept nogil
    cdef double match_separate_copies(
        self, const double* mean, const double* cov, const double* target, NetworkProgress state, VectorMatch out
    ) noexcept nogil
    cdef double match_logits(
        self, const double* mean, const double* cov, Py_ssize_t label, VectorMatch out
    ) noexcept nogil
    cdef Py_ssize_t place_likely(
        self, const double* mean, const double* cov, Py_ssize_t label, VectorMatch out
    ) noexcept nogil
    cdef void fill_score(self, Py_ssize_t count, VectorMatch out) noexcept nogil
    cdef double doubt_separate(
        self, double log_z, const double* target, NetworkProgress state, VectorMatch out
    ) noexcept nogil
    cdef double average_nodes(self, Py_ssize_t count, Py_ssize_t label, VectorMatch out) noexcept nogil
    cdef Py_ssize_t place_nodes(self, Py_ssize_t label, VectorMatch out) noexcept nogil
    cdef Py_ssize_t laguerre_nodes(self, Py_ssize_t label, bint few, VectorMatch out) noexcept nogil
    cdef double add_node(self, Lattice* lattice, double y, Py_ssize_t label, VectorMatch out) noexcept nogil
    cdef bint start_lattice(self, Lattice* lattice, Py_ssize_t label, VectorMatch out) noexcept nogil
    cdef void add_midpoints(self, Lattice* lattice, double step, Py_ssize_t label, VectorMatch out) noexcept nogil
    cdef Py_ssize_t panel_nodes(self, double u, Py_ssize_t label, VectorMatch out) noexcept nogil
    cdef (double, double) add_panel(
        self, double start, double width, Py_ssize_t count, Py_ssize_t label, VectorMatch out
    ) noexcept nogil
    cdef bint move_centre(self, const double* mean, const double* cov, VectorMatch out) noexcept nogil
    cdef void find_site(self, const double* mean, VectorMatch out) noexcept nogil
    cdef void meet_covariance(self, const double* cov, VectorMatch out) noexcept nogil
    cdef double integral(self, Py_ssize_t label, VectorMatch out) noexcept nogil
    cdef void class_probabilities(self, const double* mean, const double* cov, VectorMatch out) noexcept nogil

cdef void separate(Py_ssize_t n, const double* mean, const double* cov, VectorMatch out) noexcept nogil
cdef bint is_diagonal(Py_ssize_t n, const double* cov) noexcept nogil
cdef void keep_all(Py_ssize_t n, const double* mean, const double* cov, VectorMatch out) noexcept nogil
cdef void keep_likely(
    Py_ssize_t n, const double* mean, const double* cov, Py_ssize_t label, VectorMatch out
) noexcept nogil
cdef double unlikely_curvature(double t, VectorMatch out) noexcept nogil
cdef double total_slope(const double* slopes, VectorMatch out) noexcept nogil
cdef double share_weights(Py_ssize_t count, VectorMatch out) noexcept nogil
cdef double largest_fall(Py_ssize_t count, Py_ssize_t label, VectorMatch out) noexcept nogil
cdef double node_value(Py_ssize_t i, Py_ssize_t label, VectorMatch out) noexcept nogil
cdef double log_sum(Py_ssize_t n, const double* values) noexcept nogil
cdef void spread_slopes(
    Py_ssize_t n, const double* mean, const double* cov, Py_ssize_t count, VectorMatch out
) noexcept nogil
cdef Py_ssize_t position(Py_ssize_t label, VectorMatch out) noexcept nogil
cdef void rough_probabilities(Py_ssize_t n, const double* mean, VectorMatch out) noexcept nogil
cdef double evaluate(
    Py_ssize_t n, const double* mean, Py_ssize_t label, double u, double* slopes, VectorMatch out
) noexcept nogil
cdef (double, double) rough_slopes(
    Py_ssize_t n, const double* mean, Py_ssize_t label, double u, VectorMatch out
) noexcept nogil
cdef Peak rough_peak(Py_ssize_t n, const double* mean, Py_ssize_t label, VectorMatch out) noexcept nogil
cdef Peak find_peak(Py_ssize_t n, const double* mean, Py_ssize_t label, VectorMatch out) noexcept nogil
cdef (double, double) stretch(double y, double sharpness) noexcept nogil
cdef (double, double) label_odds(double mean, double var) noexcept nogil
