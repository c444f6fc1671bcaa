// Sums of many terms in one thread that lose less than additions one after the other do.  (No option of the compiler may
// reorder additions: neither --use_fast_math of nvcc nor the default does.)

// Kahan's: the part of each addition that rounding cut off is kept, and taken into the next one.
template <class T>
struct kahan_sum {
    T sum, lost;
    __device__ kahan_sum() {}
    __device__ kahan_sum(T first) : sum(first), lost((T)0) {}
    __device__ T value() const { return sum; }
    __device__ kahan_sum& operator+=(T term) {
        const T more = term - lost, next = sum + more;
        lost = (next - sum) - more;
        sum = next;
        return *this;
    }
};

// In pairs, pairs of pairs and so on: `part[level]` is the sum of 2^level terms where that bit of `count` is set.  At most
// 2^LEVELS - 1 terms.
template <class T, int LEVELS>
struct pairwise_sum {
    T start, part[LEVELS];
    unsigned int count;
    __device__ pairwise_sum() {}
    __device__ pairwise_sum(T first) : start(first), count(0) {}
    __device__ T value() const {
        T total = (T)0;
#pragma unroll
        for (int level = 0; level < LEVELS; ++level)
            if (count >> level & 1) total = part[level] + total;
        return start + total;
    }
    __device__ pairwise_sum& operator+=(T term) {
        bool carried = true;
#pragma unroll
        for (int level = 0; level < LEVELS; ++level) {
            if (carried && (count >> level & 1)) term = part[level] + term;
            else if (carried) part[level] = term, carried = false;
        }
        ++count;
        return *this;
    }
};
