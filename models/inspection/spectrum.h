// The spectrum of a matrix.
#pragma once
#include <vector>

#include "core/tensor.h"

namespace ricci {

// The eigenvalues of a symmetric matrix [k k], f64 on the CPU, from the largest to the smallest, to about 1e-15 of the largest in
// magnitude. Only its lower triangle is read. O(k^3): Householder reflections make it tridiagonal, and bisection with Sturm
// sequences finds the eigenvalues of that (Golub and Van Loan, Matrix Computations, 8.3 and 8.4). Error: not square, not f64 on the CPU,
// a number that is not finite.
std::vector<double> eigenvalues(const Tensor& m_kk);

// The singular values of a square matrix, from the largest to the smallest: the roots of the eigenvalues of M^T M, so that what is
// below 1e-8 of the largest is lost in rounding. Errors: the same.
std::vector<double> singular_values(const Tensor& m_kk);

}  // namespace ricci
