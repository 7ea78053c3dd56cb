// The gradient of the mean of x^2 is 2 x / n.
#include <ricci/ricci.h>

#include "core/tensor.h"

using namespace ricci;

int main() {
  Tape tape;
  const Tensor x = tape.watch(randn({3, 4}, 1));
  tape.backward(mean(x * x));
  const Tensor gradient = tape.gradient_of(x);
  int wrong = 0;
  for (int i = 0; i < kElements; ++i) {
    const double expected = 2 * item(x, i) / kElements, got = item(gradient, i);
    if (!(std::abs(got - expected) <= 1e-7 * std::abs(expected))) ++wrong;
  }
  std::printf("%d of %d elements are wrong\n", wrong, kElements);
  return wrong == 0 ? 0 : 1;
}
