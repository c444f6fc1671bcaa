"""The host code that every exported file contains: the input generator, the comparison, CUDA errors and the timer."""

from __future__ import annotations

NORMAL_SCALE = (4 * (65536.0**2 - 1) / 12) ** -0.5
"""One over the standard deviation of a sum of four 16-bit numbers."""

INPUTS = """\
#define CHECK(call) check_cuda((call), #call, __LINE__)

inline void check_cuda(cudaError_t error, const char* call, int line) {
    if (error == cudaSuccess) return;
    printf("line %d: %s: %s\\n", line, call, cudaGetErrorString(error));
    exit(2);
}

// SplitMix64 at a counter (Steele, Lea, Flood, OOPSLA 2014): element i depends on the seed and i alone.
inline unsigned long long splitmix(unsigned long long i, unsigned long long seed) {
    unsigned long long z = (i + 1) * 0x9E3779B97F4A7C15ULL + seed * 0xD1B54A32D192ED03ULL;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}

// A sum of four uniform numbers: mean 0, variance 1, within 3.47 of 0.
inline int centred(unsigned long long i, unsigned long long seed) {
    const unsigned long long h = splitmix(i, seed);
    return (int)(h & 0xFFFF) + (int)(h >> 16 & 0xFFFF) + (int)(h >> 32 & 0xFFFF) + (int)(h >> 48) - 131070;
}
inline double normal(unsigned long long i, unsigned long long seed) { return centred(i, seed) * NORMAL_SCALE; }
inline float normal_f32(unsigned long long i, unsigned long long seed) { return (float)centred(i, seed) * (float)NORMAL_SCALE; }
inline long long integer(unsigned long long i, unsigned long long seed, long long low, unsigned long long span) {
    return low + (long long)(((splitmix(i, seed) >> 32) * span) >> 32);
}
inline long long sparse(unsigned long long i, unsigned long long seed, long long low, unsigned long long span,
                        unsigned long long every, long long rest) {
    return (splitmix(i, seed) & 0xFFFFFFFF) % every == 0 ? integer(i, seed, low, span) : rest;
}

// Values along one dimension that are checked: one from each of `count` equal parts, the ends always in.
struct Choice {
    long long* values;
    long long count;
};
inline Choice choose(long long start, long long extent, long long count, unsigned long long seed) {
    Choice choice = {(long long*)malloc(sizeof(long long) * (count ? count : 1)), count};
    for (long long k = 0; k < count; ++k) {
        const long long low = k * extent / count, high = (k + 1) * extent / count;
        choice.values[k] = start + low + (long long)(splitmix(k, seed) % (unsigned long long)(high - low));
    }
    if (count) {
        choice.values[0] = start;
        choice.values[count - 1] = start + extent - 1;
    }
    return choice;
}

template <class T> inline T* on_host(unsigned long long size) {
    T* memory = (T*)malloc(sizeof(T) * (size ? size : 1));
    if (!memory) {
        printf("not enough memory on the host\\n");
        exit(2);
    }
    return memory;
}
template <class T> inline T* on_device(unsigned long long size) {
    void* memory = nullptr;
    CHECK(cudaMalloc(&memory, sizeof(T) * size));
    CHECK(cudaMemset(memory, 0xFF, sizeof(T) * size));  // an output that is not written shows
    return (T*)memory;
}
template <class T> inline void to_device(T* device, const T* host, unsigned long long size) {
    if (size) CHECK(cudaMemcpy(device, host, sizeof(T) * size, cudaMemcpyHostToDevice));
}
template <class T> inline void to_host(T* host, const T* device, unsigned long long size) {
    if (size) CHECK(cudaMemcpy(host, device, sizeof(T) * size, cudaMemcpyDeviceToHost));
}

// Numbers in and out of the element types.
template <class T, class N> inline T from_number(N number) { return (T)number; }
template <class T> inline T to_number(T value) { return value; }
""".replace("NORMAL_SCALE", repr(NORMAL_SCALE))

CONVERSIONS = {
    "f16": """\
template <> inline __half from_number<__half, float>(float number) { return __float2half(number); }
template <> inline __half from_number<__half, long long>(long long number) { return __float2half((float)number); }
inline float to_number(__half value) { return __half2float(value); }
""",
    "bf16": """\
template <> inline __nv_bfloat16 from_number<__nv_bfloat16, float>(float number) { return __float2bfloat16(number); }
template <> inline __nv_bfloat16 from_number<__nv_bfloat16, long long>(long long number) {
    return __float2bfloat16((float)number);
}
inline float to_number(__nv_bfloat16 value) { return __bfloat162float(value); }
""",
    **{name: f"""\
template <> inline {t} from_number<{t}, float>(float number) {{ return {t}(number); }}
template <> inline {t} from_number<{t}, long long>(long long number) {{ return {t}((float)number); }}
inline float to_number({t} value) {{ return float(value); }}
""" for name, t in (("f8e4m3", "__nv_fp8_e4m3"), ("f8e5m2", "__nv_fp8_e5m2"))},
    "bool": """\
inline unsigned char to_number(const bool& value) {  // the byte, since an unwritten one is no bool
    unsigned char byte;
    memcpy(&byte, &value, 1);
    return byte;
}
""",
}
"""Element types that need more than a cast."""

COMPARE = """\
inline double distance(long long got, long long expected) {
    return got == expected ? 0.0 : fmax(1.0, fabs((double)got - (double)expected));
}
inline double distance(unsigned long long got, unsigned long long expected) {
    return got == expected ? 0.0 : fmax(1.0, fabs((double)got - (double)expected));
}
inline double distance(unsigned char got, unsigned char expected) { return got == expected ? 0.0 : 1.0; }
inline double distance(double got, double expected) { return got == expected ? 0.0 : fabs(got - expected); }

// Whether `got` is the NaN or the infinity that `expected` rounds to.
template <class T> inline bool same_special(long long, long long) { return false; }
template <class T> inline bool same_special(unsigned long long, unsigned long long) { return false; }
template <class T> inline bool same_special(unsigned char, unsigned char) { return false; }
template <class T> inline bool same_special(double got, double expected) {
    if (got != got || expected != expected) return got != got && expected != expected;
    return isinf(got) && (sizeof(T) == sizeof(double) ? expected : (double)to_number(from_number<T>((float)expected))) == got;
}

template <class T, class W>
inline bool compare(const char* name, const T* got, const W* expected, int rank, const long long* shape, const Choice* picks,
                    double relative, double absolute, double of_largest) {
    long long total = 1, wrong = 0, first = -1;
    for (int d = 0; d < rank; ++d) total *= picks[d].count;
    double largest_error = 0.0, largest = 0.0;
    for (int pass = of_largest > 0.0 ? 0 : 1; pass < 2; ++pass) {
        for (long long cell = 0; cell < total; ++cell) {
            long long at = 0, rest = cell, stride = 1;
            for (int d = rank - 1; d >= 0; --d) {
                at += picks[d].values[rest % picks[d].count] * stride;
                stride *= shape[d];
                rest /= picks[d].count;
            }
            const W value = (W)to_number(got[at]), right = expected[at];
            const double size = fabs((double)right);
            if (pass == 0) {
                if (isfinite(size)) largest = fmax(largest, size);
                continue;
            }
            const double error = distance(value, right);
            if (error <= relative * size + absolute + of_largest * largest || same_special<T>(value, right)) {
                if (isfinite(error)) largest_error = fmax(largest_error, error);
            } else {
                if (!wrong++) first = at;
            }
        }
    }
    long long cells = 1;
    for (int d = 0; d < rank; ++d) cells *= shape[d];
    printf("%s: %lld of %lld cells checked, %lld wrong; ", name, total, cells, wrong);
    printf("largest error of the others %.3g, allowed %.3g * |expected| + %.3g\\n", largest_error, relative,
           absolute + of_largest * largest);
    if (!wrong) return true;
    printf("    first wrong: %s[", name);
    for (int d = 0; d < rank; ++d) {
        long long below = 1;
        for (int e = d + 1; e < rank; ++e) below *= shape[e];
        printf(d ? ", %lld" : "%lld", first / below % shape[d]);
    }
    printf("] = %.9g, expected %.9g\\n", (double)to_number(got[first]), (double)expected[first]);
    return false;
}

// Times between CUDA events; the L2 cache is as the run before left it.
static const int WARMUP = 3, REPEATS = 21;
struct Timer {
    cudaEvent_t begin, end;
    float taken[REPEATS];
    Timer() {
        CHECK(cudaEventCreate(&begin));
        CHECK(cudaEventCreate(&end));
    }
    void start() { CHECK(cudaEventRecord(begin, 0)); }
    void stop(int repeat) {
        CHECK(cudaEventRecord(end, 0));
        CHECK(cudaEventSynchronize(end));
        float milliseconds = 0.0f;
        CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
        if (repeat >= 0) taken[repeat] = milliseconds;
    }
    void print() {
        for (int i = 1; i < REPEATS; ++i)
            for (int j = i; j > 0 && taken[j] < taken[j - 1]; --j) {
                const float swapped = taken[j];
                taken[j] = taken[j - 1];
                taken[j - 1] = swapped;
            }
        printf("median %.2f us, quartiles %.2f to %.2f us (%d runs, warm L2)\\n", 1e3 * taken[REPEATS / 2],
               1e3 * taken[REPEATS / 4], 1e3 * taken[REPEATS - 1 - REPEATS / 4], REPEATS);
    }
    ~Timer() {
        CHECK(cudaEventDestroy(begin));
        CHECK(cudaEventDestroy(end));
    }
};
"""

MAIN_HEAD = """\
namespace self_check {

inline int run(int argc, char** argv) {
    const bool full = argc > 1 && !strcmp(argv[1], "--full");
    (void)full;"""

MAIN_TAIL = """\
    if (!reference_faults) printf(right ? "all right\\n" : "WRONG\\n");
    return reference_faults ? 2 : right ? 0 : 1;
}

}  // namespace self_check

int main(int argc, char** argv) { return self_check::run(argc, argv); }
#endif"""
