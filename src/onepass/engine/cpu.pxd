cdef extern from *:
    """
    #if (defined(__x86_64__) || defined(_M_X64)) && (defined(__GNUC__) || defined(__clang__))
    static int onepass_has_avx2(void) {
        __builtin_cpu_init();
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
    }
    #else
    static int onepass_has_avx2(void) { return 0; }
    #endif
    """
    int onepass_has_avx2() nogil

cpdef bint has_avx2()
