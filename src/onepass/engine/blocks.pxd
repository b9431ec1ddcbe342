cdef enum:
    LOST = -1
    STOPPED = -2
    WRONG = -3
