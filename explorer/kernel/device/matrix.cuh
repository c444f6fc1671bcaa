// Fragments from shared memory (PTX ISA, ldmatrix; sm_75 and newer): COUNT matrices of eight rows of 16 bytes, one register of
// each in every lane.  Lane 8 * m + q names row q of matrix m.
template <int COUNT, bool TRANSPOSED, class T, int N>
__device__ __forceinline__ void load_matrix(T (&to)[N], const void* row) {
    static_assert(sizeof to == COUNT * 4, "one register for each matrix");
    unsigned r[COUNT];
#if defined(SIMT_HOST)
    simt_load_matrix<COUNT, TRANSPOSED>(r, row, __builtin_LINE());
#else
    const unsigned at = (unsigned)__cvta_generic_to_shared(row);
    if constexpr (COUNT == 4 && !TRANSPOSED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
    else if constexpr (COUNT == 4)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
    else if constexpr (COUNT == 2 && !TRANSPOSED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(at) : "memory");
    else if constexpr (COUNT == 2)
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(at) : "memory");
    else if constexpr (!TRANSPOSED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r[0]) : "r"(at) : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(r[0]) : "r"(at) : "memory");
#endif
    memcpy(to, r, sizeof r);
}

// Fragments to shared memory (PTX ISA, stmatrix; sm_90 and newer), the other way round: each lane gives COUNT registers.
template <int COUNT, bool TRANSPOSED, class T>
__device__ __forceinline__ void store_matrix(void* row, const T* from) {
    unsigned r[COUNT];
    memcpy(r, from, sizeof r);
#if defined(SIMT_HOST)
    simt_store_matrix<COUNT, TRANSPOSED>(row, r, __builtin_LINE());
#else
    const unsigned at = (unsigned)__cvta_generic_to_shared(row);
    if constexpr (COUNT == 4 && !TRANSPOSED)
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                     :: "r"(at), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
    else if constexpr (COUNT == 4)
        asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};"
                     :: "r"(at), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
    else if constexpr (COUNT == 2 && !TRANSPOSED)
        asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};"
                     :: "r"(at), "r"(r[0]), "r"(r[1]) : "memory");
    else if constexpr (COUNT == 2)
        asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};"
                     :: "r"(at), "r"(r[0]), "r"(r[1]) : "memory");
    else if constexpr (!TRANSPOSED)
        asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};"
                     :: "r"(at), "r"(r[0]) : "memory");
    else
        asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};"
                     :: "r"(at), "r"(r[0]) : "memory");
#endif
}
