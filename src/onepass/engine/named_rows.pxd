cpdef object named_row(dict x, dict columns, Py_ssize_t n_columns, double largest, double absent)
