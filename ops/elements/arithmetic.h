#pragma once
#include "autograd/arg.h"

namespace ricci {

// Computed element by element, with NumPy's broadcasting: shapes are aligned at the innermost index, and an extent of 1 or a missing index
// repeats.
// Errors: the shapes do not broadcast, the arguments differ in dtype or device.
Tensor add(const Arg& a, const Arg& b);
Tensor subtract(const Arg& a, const Arg& b);
Tensor multiply(const Arg& a, const Arg& b);
Tensor divide(const Arg& a, const Arg& b);

// factor * x
Tensor scale(const Arg& x, double factor);

inline Tensor operator+(const Arg& a, const Arg& b) { return add(a, b); }
inline Tensor operator-(const Arg& a, const Arg& b) { return subtract(a, b); }
inline Tensor operator*(const Arg& a, const Arg& b) { return multiply(a, b); }
inline Tensor operator/(const Arg& a, const Arg& b) { return divide(a, b); }
inline Tensor operator-(const Arg& x) { return scale(x, -1); }
inline Tensor operator*(const Arg& x, double factor) { return scale(x, factor); }
inline Tensor operator*(double factor, const Arg& x) { return scale(x, factor); }
inline Tensor operator/(const Arg& x, double divisor) { return scale(x, 1 / divisor); }

}  // namespace ricci
