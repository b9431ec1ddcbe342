cdef extern from *:
    """
    /* The processor has AVX2, FMA and BMI2 (leaves 7 and 1 of CPUID), and the system saves the wide registers. */
    #if defined(_M_X64)
    #include <intrin.h>
    static void onepass_cpuid(unsigned leaf, unsigned out[4]) { __cpuidex((int *)out, (int)leaf, 0); }
    static unsigned onepass_saved(void) { return (unsigned)_xgetbv(0); }
    #elif defined(__x86_64__)
    #include <cpuid.h>
    static void onepass_cpuid(unsigned leaf, unsigned out[4]) {
        out[0] = out[1] = out[2] = out[3] = 0;
        __get_cpuid_count(leaf, 0, &out[0], &out[1], &out[2], &out[3]);
    }
    static unsigned onepass_saved(void) {
        unsigned low, high;
        __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
        return low;
    }
    #endif
    static int onepass_has_avx2(void) {
    #if defined(_M_X64) || defined(__x86_64__)
        unsigned basic[4], extended[4];
        onepass_cpuid(1, basic);
        onepass_cpuid(7, extended);
        if (!(basic[2] >> 27 & 1)) return 0; /* OSXSAVE: xgetbv may be asked */
        return (basic[2] >> 12 & 1) && (extended[1] >> 5 & 1) && (extended[1] >> 8 & 1) && (onepass_saved() & 6) == 6;
    #else
        return 0;
    #endif
    }
    """
    int onepass_has_avx2() nogil

cpdef bint has_avx2()
