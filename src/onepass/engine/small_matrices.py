"""Linear algebra on matrices as small as the number of a network's outputs, where a call into LAPACK would cost more.

Matrices are ``(n, n)``, row after row; the caller allocates the memory.
"""

import cython
from cython.cimports.libc.math import fabs, log, sqrt

_MOST_SWEEPS = cython.declare(cython.int, 30)
_OFF_DIAGONAL = cython.declare(cython.double, 1e-30)  # squares off the diagonal, as a share of those on it


def invert(n, matrix, inverse):
    """Fill the inverse and return the log of the determinant's magnitude; ``matrix`` is used up.

    By elimination with row exchange.
    """
    log_det = 0.0
    c: cython.Py_ssize_t
    r: cython.Py_ssize_t
    k: cython.Py_ssize_t
    for r in range(n):
        for k in range(n):
            inverse[r * n + k] = 1.0 if r == k else 0.0
    for c in range(n):
        pivot = c
        for r in range(c + 1, n):
            if fabs(matrix[r * n + c]) > fabs(matrix[pivot * n + c]):
                pivot = r
        if pivot != c:
            for k in range(n):
                matrix[c * n + k], matrix[pivot * n + k] = matrix[pivot * n + k], matrix[c * n + k]
                inverse[c * n + k], inverse[pivot * n + k] = inverse[pivot * n + k], inverse[c * n + k]
        log_det += log(fabs(matrix[c * n + c]))
        scale = 1.0 / matrix[c * n + c]
        for k in range(n):
            matrix[c * n + k] *= scale
            inverse[c * n + k] *= scale
        for r in range(n):
            factor = matrix[r * n + c]
            if r != c and factor != 0.0:
                for k in range(n):
                    matrix[r * n + k] -= factor * matrix[c * n + k]
                    inverse[r * n + k] -= factor * inverse[c * n + k]
    return log_det


def factorise(n, matrix, root):
    """Fill the lower Cholesky factor; a direction without variance gets a column of zeros."""
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    for i in range(n * n):
        root[i] = 0.0
    for j in range(n):
        left = matrix[j * n + j]
        for k in range(j):
            left -= root[j * n + k] * root[j * n + k]
        if left <= 1e-14 * matrix[j * n + j]:
            continue
        root[j * n + j] = sqrt(left)
        for i in range(j + 1, n):
            entry = matrix[i * n + j]
            for k in range(j):
                entry -= root[i * n + k] * root[j * n + k]
            root[i * n + j] = entry / root[j * n + j]


def is_positive(n, matrix):
    """Whether a symmetric matrix, which is used up, is positive definite: elimination meets positive pivots only."""
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    for j in range(n):
        if not matrix[j * n + j] > 0.0:
            return False
        for i in range(j + 1, n):
            factor = matrix[i * n + j] / matrix[j * n + j]
            for k in range(j, n):
                matrix[i * n + k] -= factor * matrix[j * n + k]
    return True


def apply(n, factor, matrix, vector, new_matrix, new_vector):
    """``factor matrix``, made symmetric, and ``factor vector``."""
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    for i in range(n):
        new_vector[i] = 0.0
        for k in range(n):
            new_matrix[i * n + k] = 0.0
        for j in range(n):
            here = factor[i * n + j]
            new_vector[i] += here * vector[j]
            for k in range(n):
                new_matrix[i * n + k] += here * matrix[j * n + k]
    for i in range(n):
        for k in range(i):
            middle = 0.5 * (new_matrix[i * n + k] + new_matrix[k * n + i])
            new_matrix[i * n + k] = middle
            new_matrix[k * n + i] = middle


def divide_by_root(n, matrix, root):
    """``matrix root'⁻¹`` in its place, with the lower Cholesky factor of a positive definite matrix."""
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    for i in range(n):
        row = matrix + i * n
        for k in range(n):
            entry = row[k]
            for j in range(k):
                entry -= row[j] * root[k * n + j]
            row[k] = entry / root[k * n + k]


def add_square(n, matrix, total):
    """Add ``matrix matrix'`` to a symmetric matrix."""
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    for i in range(n):
        for j in range(i + 1):
            entry = 0.0
            for k in range(n):
                entry += matrix[i * n + k] * matrix[j * n + k]
            total[i * n + j] += entry
            if j < i:
                total[j * n + i] += entry


def diagonalise(n, matrix, vectors):
    """Turn a symmetric matrix to its eigenvalues, on the diagonal; ``vectors`` has the eigenvectors in columns.

    By Jacobi's rotations.
    """
    i: cython.Py_ssize_t
    p: cython.Py_ssize_t
    q: cython.Py_ssize_t
    for p in range(n):
        for q in range(n):
            vectors[p * n + q] = 1.0 if p == q else 0.0
    for _ in range(_MOST_SWEEPS):
        total = 0.0
        off = 0.0
        for p in range(n):
            total += matrix[p * n + p] * matrix[p * n + p]
            for q in range(p):
                off += matrix[p * n + q] * matrix[p * n + q]
        if not off > _OFF_DIAGONAL * total:
            return
        for p in range(n):
            for q in range(p + 1, n):
                entry = matrix[p * n + q]
                if entry == 0.0:
                    continue
                ratio = (matrix[q * n + q] - matrix[p * n + p]) / (2.0 * entry)
                tangent = 1.0 / (fabs(ratio) + sqrt(ratio * ratio + 1.0))
                if ratio < 0.0:
                    tangent = -tangent
                cosine = 1.0 / sqrt(tangent * tangent + 1.0)
                sine = tangent * cosine
                for i in range(n):
                    _turn(cython.address(matrix[i * n + p]), cython.address(matrix[i * n + q]), cosine, sine)
                    _turn(cython.address(vectors[i * n + p]), cython.address(vectors[i * n + q]), cosine, sine)
                for i in range(n):
                    _turn(cython.address(matrix[p * n + i]), cython.address(matrix[q * n + i]), cosine, sine)


def _turn(first, second, cosine, sine):
    """Turn a pair of numbers."""
    before = first[0]
    first[0] = cosine * before - sine * second[0]
    second[0] = sine * before + cosine * second[0]
