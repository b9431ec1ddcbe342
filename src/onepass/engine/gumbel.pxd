cdef enum:
    N_TERMS = 24  # the most that one logit needs

cdef void prepare_logit(double var, double* terms) noexcept nogil
cdef (double, double, double) scaled_cdf(double x, double var, const double* terms) noexcept nogil
cdef (double, double) log_pdf(double x, double var, const double* terms) noexcept nogil
cdef (double, double) rough_cdf_slopes(double x, double var) noexcept nogil
cdef (double, double) rough_pdf_slopes(double x, double var) noexcept nogil
cdef (Py_ssize_t, Py_ssize_t) _rule(double var) noexcept nogil
cdef (double, double, double, double, double) _atoms(double x, double var, const double* terms) noexcept nogil
cdef (double, double, double) _gaussians(double x, const double* terms) noexcept nogil
cdef (double, double, double) _densities(double x, const double* terms) noexcept nogil
