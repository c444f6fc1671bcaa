"""The affine kernels of PolyBench/C 4.2 as somebody types them into Python, with the data mining's last loops included.

Each entry: the sizes to run at, the signature, and the body.  Nothing is rearranged to please the parser.
"""

# fmt: off
from __future__ import annotations

KERNELS: dict[str, tuple[dict[str, int], str, str]] = {
    "2mm": ({"M": 4, "N": 5, "K": 3, "T": 6}, "alpha: ex.f32, beta: ex.f32, A: ex.f32[M, K], B: ex.f32[K, N], C: ex.f32[N, T], "
            "D: ex.f32[M, T], tmp: ex.f32[M, N]", """
for i in range(M):
    for j in range(N):
        tmp[i, j] = 0.0
        for k in range(K):
            tmp[i, j] += alpha * A[i, k] * B[k, j]
for i in range(M):
    for j in range(T):
        D[i, j] *= beta
        for k in range(N):
            D[i, j] += tmp[i, k] * C[k, j]
"""),
    "atax": ({"M": 5, "N": 4}, "A: ex.f32[M, N], x: ex.f32[N], y: ex.f32[N], tmp: ex.f32[M]", """
for i in range(N):
    y[i] = 0
for i in range(M):
    tmp[i] = 0.0
    for j in range(N):
        tmp[i] = tmp[i] + A[i, j] * x[j]
    for j in range(N):
        y[j] = y[j] + A[i, j] * tmp[i]
"""),
    "bicg": ({"M": 5, "N": 4}, "A: ex.f32[N, M], s: ex.f32[M], q: ex.f32[N], p: ex.f32[M], r: ex.f32[N]", """
for i in range(M):
    s[i] = 0
for i in range(N):
    q[i] = 0.0
    for j in range(M):
        s[j] = s[j] + r[i] * A[i, j]
        q[i] = q[i] + A[i, j] * p[j]
"""),
    "mvt": ({"N": 6}, "x1: ex.f32[N], x2: ex.f32[N], y_1: ex.f32[N], y_2: ex.f32[N], A: ex.f32[N, N]", """
for i in range(N):
    for j in range(N):
        x1[i] = x1[i] + A[i, j] * y_1[j]
for i in range(N):
    for j in range(N):
        x2[i] = x2[i] + A[j, i] * y_2[j]
"""),
    "doitgen": ({"M": 3, "N": 4, "K": 5}, "A: ex.f32[M, N, K], C4: ex.f32[K, K], sum_: ex.f32[K]", """
for r in range(M):
    for q in range(N):
        for p in range(K):
            sum_[p] = 0.0
            for s in range(K):
                sum_[p] += A[r, q, s] * C4[s, p]
        for p in range(K):
            A[r, q, p] = sum_[p]
"""),
    "gemver": ({"N": 5}, "alpha: ex.f32, beta: ex.f32, A: ex.f32[N, N], u1: ex.f32[N], v1: ex.f32[N], u2: ex.f32[N], "
               "v2: ex.f32[N], w: ex.f32[N], x: ex.f32[N], y: ex.f32[N], z: ex.f32[N]", """
for i in range(N):
    for j in range(N):
        A[i, j] = A[i, j] + u1[i] * v1[j] + u2[i] * v2[j]
for i in range(N):
    for j in range(N):
        x[i] = x[i] + beta * A[j, i] * y[j]
for i in range(N):
    x[i] = x[i] + z[i]
for i in range(N):
    for j in range(N):
        w[i] = w[i] + alpha * A[i, j] * x[j]
"""),
    "gesummv": ({"N": 6}, "alpha: ex.f32, beta: ex.f32, A: ex.f32[N, N], B: ex.f32[N, N], tmp: ex.f32[N], x: ex.f32[N], "
                "y: ex.f32[N]", """
for i in range(N):
    tmp[i] = 0.0
    y[i] = 0.0
    for j in range(N):
        tmp[i] = A[i, j] * x[j] + tmp[i]
        y[i] = B[i, j] * x[j] + y[i]
    y[i] = alpha * tmp[i] + beta * y[i]
"""),
    "symm": ({"M": 4, "N": 5}, "alpha: ex.f32, beta: ex.f32, C: ex.f32[M, N], A: ex.f32[M, M], B: ex.f32[M, N]", """
for i in range(M):
    for j in range(N):
        temp2 = ex.local(ex.f32)
        temp2 = 0
        for k in range(i):
            C[k, j] += alpha * B[i, j] * A[i, k]
            temp2 += B[k, j] * A[i, k]
        C[i, j] = beta * C[i, j] + alpha * B[i, j] * A[i, i] + alpha * temp2
"""),
    "syr2k": ({"M": 4, "N": 5}, "alpha: ex.f32, beta: ex.f32, C: ex.f32[N, N], A: ex.f32[N, M], B: ex.f32[N, M]", """
for i in range(N):
    for j in range(i + 1):
        C[i, j] *= beta
    for k in range(M):
        for j in range(i + 1):
            C[i, j] += A[j, k] * alpha * B[i, k] + B[j, k] * alpha * A[i, k]
"""),
    "trmm": ({"M": 4, "N": 5}, "alpha: ex.f32, A: ex.f32[M, M], B: ex.f32[M, N]", """
for i in range(M):
    for j in range(N):
        for k in range(i + 1, M):
            B[i, j] += A[k, i] * B[k, j]
        B[i, j] = alpha * B[i, j]
"""),
    "correlation": ({"M": 4, "N": 5}, "data: ex.f32[N, M], corr: ex.f32[M, M], mean: ex.f32[M], stddev: ex.f32[M]", """
for j in range(M):
    mean[j] = 0.0
    for i in range(N):
        mean[j] += data[i, j]
    mean[j] /= N
for j in range(M):
    stddev[j] = 0.0
    for i in range(N):
        stddev[j] += (data[i, j] - mean[j]) * (data[i, j] - mean[j])
    stddev[j] /= N
    stddev[j] = ex.sqrt(stddev[j])
    stddev[j] = 1.0 if stddev[j] <= 0.1 else stddev[j]
for i in range(N):
    for j in range(M):
        data[i, j] -= mean[j]
        data[i, j] /= N ** 0.5 * stddev[j]
for i in range(M - 1):
    corr[i, i] = 1.0
    for j in range(i + 1, M):
        corr[i, j] = 0.0
        for k in range(N):
            corr[i, j] += data[k, i] * data[k, j]
        corr[j, i] = corr[i, j]
corr[M - 1, M - 1] = 1.0
"""),
    "covariance": ({"M": 4, "N": 5}, "data: ex.f32[N, M], cov: ex.f32[M, M], mean: ex.f32[M]", """
for j in range(M):
    mean[j] = 0.0
    for i in range(N):
        mean[j] += data[i, j]
    mean[j] /= N
for i in range(N):
    for j in range(M):
        data[i, j] -= mean[j]
for i in range(M):
    for j in range(i, M):
        cov[i, j] = 0.0
        for k in range(N):
            cov[i, j] += data[k, i] * data[k, j]
        cov[i, j] /= N - 1.0
        cov[j, i] = cov[i, j]
"""),
    "cholesky": ({"N": 5}, "A: ex.f64[N, N]", """
for i in range(N):
    for j in range(i):
        for k in range(j):
            A[i, j] -= A[i, k] * A[j, k]
        A[i, j] /= A[j, j]
    for k in range(i):
        A[i, i] -= A[i, k] * A[i, k]
    A[i, i] = ex.sqrt(A[i, i])
"""),
    "durbin": ({"N": 5}, "r: ex.f64[N], y: ex.f64[N], z: ex.f64[N]", """
alpha = ex.local(ex.f64)
beta = ex.local(ex.f64)
total = ex.local(ex.f64)
y[0] = -r[0]
beta = 1.0
alpha = -r[0]
for k in range(1, N):
    beta = (1 - alpha * alpha) * beta
    total = 0.0
    for i in range(k):
        total += r[k - i - 1] * y[i]
    alpha = -(r[k] + total) / beta
    for i in range(k):
        z[i] = y[i] + alpha * y[k - i - 1]
    for i in range(k):
        y[i] = z[i]
    y[k] = alpha
"""),
    "gramschmidt": ({"M": 4, "N": 3}, "A: ex.f64[M, N], R: ex.f64[N, N], Q: ex.f64[M, N]", """
for k in range(N):
    nrm = ex.local(ex.f64)
    nrm = 0.0
    for i in range(M):
        nrm += A[i, k] * A[i, k]
    R[k, k] = ex.sqrt(nrm)
    for i in range(M):
        Q[i, k] = A[i, k] / R[k, k]
    for j in range(k + 1, N):
        R[k, j] = 0.0
        for i in range(M):
            R[k, j] += Q[i, k] * A[i, j]
        for i in range(M):
            A[i, j] = A[i, j] - Q[i, k] * R[k, j]
"""),
    "lu": ({"N": 5}, "A: ex.f64[N, N]", """
for i in range(N):
    for j in range(i):
        for k in range(j):
            A[i, j] -= A[i, k] * A[k, j]
        A[i, j] /= A[j, j]
    for j in range(i, N):
        for k in range(i):
            A[i, j] -= A[i, k] * A[k, j]
"""),
    "ludcmp": ({"N": 5}, "A: ex.f64[N, N], b: ex.f64[N], x: ex.f64[N], y: ex.f64[N]", """
for i in range(N):
    for j in range(i):
        w = ex.local(ex.f64)
        w = A[i, j]
        for k in range(j):
            w -= A[i, k] * A[k, j]
        A[i, j] = w / A[j, j]
    for j in range(i, N):
        w = ex.local(ex.f64)
        w = A[i, j]
        for k in range(i):
            w -= A[i, k] * A[k, j]
        A[i, j] = w
for i in range(N):
    w = ex.local(ex.f64)
    w = b[i]
    for j in range(i):
        w -= A[i, j] * y[j]
    y[i] = w
for i in range(N - 1, -1, -1):
    w = ex.local(ex.f64)
    w = y[i]
    for j in range(i + 1, N):
        w -= A[i, j] * x[j]
    x[i] = w / A[i, i]
"""),
    "trisolv": ({"N": 6}, "L: ex.f64[N, N], x: ex.f64[N], b: ex.f64[N]", """
for i in range(N):
    x[i] = b[i]
    for j in range(i):
        x[i] -= L[i, j] * x[j]
    x[i] = x[i] / L[i, i]
"""),
    "deriche": ({"M": 4, "N": 5}, "imgIn: ex.f32[M, N], imgOut: ex.f32[M, N], y1: ex.f32[M, N], y2: ex.f32[M, N]", """
for i in range(M):
    ym1 = ex.local(ex.f32)
    ym2 = ex.local(ex.f32)
    xm1 = ex.local(ex.f32)
    ym1 = 0.0
    ym2 = 0.0
    xm1 = 0.0
    for j in range(N):
        y1[i, j] = 0.5 * imgIn[i, j] + 0.25 * xm1 + 0.125 * ym1 - 0.0625 * ym2
        xm1 = imgIn[i, j]
        ym2 = ym1
        ym1 = y1[i, j]
for i in range(M):
    yp1 = ex.local(ex.f32)
    yp2 = ex.local(ex.f32)
    xp1 = ex.local(ex.f32)
    yp1 = 0.0
    yp2 = 0.0
    xp1 = 0.0
    for j in range(N - 1, -1, -1):
        y2[i, j] = 0.5 * xp1 + 0.125 * yp1 - 0.0625 * yp2
        xp1 = imgIn[i, j]
        yp2 = yp1
        yp1 = y2[i, j]
for i in range(M):
    for j in range(N):
        imgOut[i, j] = 0.5 * (y1[i, j] + y2[i, j])
"""),
    "floyd-warshall": ({"N": 5}, "path: ex.i32[N, N]", """
for k in range(N):
    for i in range(N):
        for j in range(N):
            path[i, j] = path[i, j] if path[i, j] < path[i, k] + path[k, j] else path[i, k] + path[k, j]
"""),
    "nussinov": ({"N": 6}, "seq: ex.i32[N], table: ex.i32[N, N]", """
for i in range(N - 1, -1, -1):
    for j in range(i + 1, N):
        if j - 1 >= 0:
            table[i, j] = max(table[i, j], table[i, j - 1])
        if i + 1 < N:
            table[i, j] = max(table[i, j], table[i + 1, j])
        if j - 1 >= 0 and i + 1 < N:
            if i < j - 1:
                table[i, j] = max(table[i, j], table[i + 1, j - 1] + (1 if seq[i] + seq[j] == 3 else 0))
            else:
                table[i, j] = max(table[i, j], table[i + 1, j - 1])
        for k in range(i + 1, j):
            table[i, j] = max(table[i, j], table[i, k] + table[k + 1, j])
"""),
    "adi": ({"T": 2, "N": 5}, "u: ex.f64[N, N], v: ex.f64[N, N], p: ex.f64[N, N], q: ex.f64[N, N]", """
for t in range(1, T + 1):
    for i in range(1, N - 1):
        v[0, i] = 1.0
        p[i, 0] = 0.0
        q[i, 0] = v[0, i]
        for j in range(1, N - 1):
            p[i, j] = -0.25 / (0.5 * p[i, j - 1] + 3.0)
            q[i, j] = (-0.5 * u[j, i - 1] + 2.0 * u[j, i] - 0.25 * u[j, i + 1] - 0.5 * q[i, j - 1]) / (0.5 * p[i, j - 1] + 3.0)
        v[N - 1, i] = 1.0
        for j in range(N - 2, 0, -1):
            v[j, i] = p[i, j] * v[j + 1, i] + q[i, j]
    for i in range(1, N - 1):
        u[i, 0] = 1.0
        p[i, 0] = 0.0
        q[i, 0] = u[i, 0]
        for j in range(1, N - 1):
            p[i, j] = -0.25 / (0.5 * p[i, j - 1] + 3.0)
            q[i, j] = (-0.5 * v[i - 1, j] + 2.0 * v[i, j] - 0.25 * v[i + 1, j] - 0.5 * q[i, j - 1]) / (0.5 * p[i, j - 1] + 3.0)
        u[i, N - 1] = 1.0
        for j in range(N - 2, 0, -1):
            u[i, j] = p[i, j] * u[i, j + 1] + q[i, j]
"""),
    "fdtd-2d": ({"T": 3, "M": 5, "N": 4}, "ex_: ex.f32[M, N], ey: ex.f32[M, N], hz: ex.f32[M, N], _fict_: ex.f32[T]", """
for t in range(T):
    for j in range(N):
        ey[0, j] = _fict_[t]
    for i in range(1, M):
        for j in range(N):
            ey[i, j] = ey[i, j] - 0.5 * (hz[i, j] - hz[i - 1, j])
    for i in range(M):
        for j in range(1, N):
            ex_[i, j] = ex_[i, j] - 0.5 * (hz[i, j] - hz[i, j - 1])
    for i in range(M - 1):
        for j in range(N - 1):
            hz[i, j] = hz[i, j] - 0.7 * (ex_[i, j + 1] - ex_[i, j] + ey[i + 1, j] - ey[i, j])
"""),
    "heat-3d": ({"T": 2, "N": 5}, "A: ex.f32[N, N, N], B: ex.f32[N, N, N]", """
for t in range(1, T + 1):
    for i in range(1, N - 1):
        for j in range(1, N - 1):
            for k in range(1, N - 1):
                B[i, j, k] = (0.125 * (A[i + 1, j, k] - 2.0 * A[i, j, k] + A[i - 1, j, k])
                              + 0.125 * (A[i, j + 1, k] - 2.0 * A[i, j, k] + A[i, j - 1, k])
                              + 0.125 * (A[i, j, k + 1] - 2.0 * A[i, j, k] + A[i, j, k - 1]) + A[i, j, k])
    for i in range(1, N - 1):
        for j in range(1, N - 1):
            for k in range(1, N - 1):
                A[i, j, k] = (0.125 * (B[i + 1, j, k] - 2.0 * B[i, j, k] + B[i - 1, j, k])
                              + 0.125 * (B[i, j + 1, k] - 2.0 * B[i, j, k] + B[i, j - 1, k])
                              + 0.125 * (B[i, j, k + 1] - 2.0 * B[i, j, k] + B[i, j, k - 1]) + B[i, j, k])
"""),
    "jacobi-1d": ({"T": 3, "N": 8}, "A: ex.f32[N], B: ex.f32[N]", """
for t in range(T):
    for i in range(1, N - 1):
        B[i] = 0.33333 * (A[i - 1] + A[i] + A[i + 1])
    for i in range(1, N - 1):
        A[i] = 0.33333 * (B[i - 1] + B[i] + B[i + 1])
"""),
    "jacobi-2d": ({"T": 3, "N": 6}, "A: ex.f32[N, N], B: ex.f32[N, N]", """
for t in range(T):
    for i in range(1, N - 1):
        for j in range(1, N - 1):
            B[i, j] = 0.2 * (A[i, j] + A[i, j - 1] + A[i, 1 + j] + A[1 + i, j] + A[i - 1, j])
    for i in range(1, N - 1):
        for j in range(1, N - 1):
            A[i, j] = 0.2 * (B[i, j] + B[i, j - 1] + B[i, 1 + j] + B[1 + i, j] + B[i - 1, j])
"""),
    "seidel-2d": ({"T": 2, "N": 6}, "A: ex.f32[N, N]", """
for t in range(T):
    for i in range(1, N - 1):
        for j in range(1, N - 1):
            A[i, j] = (A[i - 1, j - 1] + A[i - 1, j] + A[i - 1, j + 1] + A[i, j - 1] + A[i, j]
                       + A[i, j + 1] + A[i + 1, j - 1] + A[i + 1, j] + A[i + 1, j + 1]) / 9.0
"""),
}
