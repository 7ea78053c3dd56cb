// The spectra of matrices, such as the matrix of a head's scores.
#pragma once
#include <vector>

#include "core/tensor.h"

namespace ricci {

// The eigenvalues of a symmetric matrix [k k], f64 on the CPU, from the largest to the smallest, accurate to about 1e-15 times the
// largest magnitude, in O(k^3) time. Error: the matrix is not square, not f64 on the CPU, or not finite.
std::vector<double> eigenvalues(const Tensor& m_kk);

// The singular values of a square matrix, from the largest to the smallest: the square roots of the eigenvalues of M^T M. Values below 1e-8
// times the largest are lost in rounding. Errors: as for eigenvalues.
std::vector<double> singular_values(const Tensor& m_kk);

}  // namespace ricci
