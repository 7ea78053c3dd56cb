// The gradient of the mean of x^2 is 2 x / n. Two ops are in files of the same name, and their objects must not overwrite each other.
#include <ricci/ricci.h>

#include "core/tensor.h"

using namespace ricci;

Tensor doubled(const Tensor& x);
Tensor tripled(const Tensor& x);

int main() {
  Tape tape;
  const Tensor x = tape.watch(randn({3, 4}, 1));
  tape.backward(mean(x * x));
  const Tensor gradient = tape.gradient_of(x), twice = doubled(x), thrice = tripled(x);
  int wrong = 0;
  for (int i = 0; i < kElements; ++i) {
    const double expected = 2 * item(x, i) / kElements, got = item(gradient, i);
    const bool ops_are_right =
        item(twice, i) == 2 * item(x, i) && item(thrice, i) == static_cast<double>(3 * static_cast<float>(item(x, i)));
    if (!(std::abs(got - expected) <= 1e-7 * std::abs(expected)) || !ops_are_right) ++wrong;
  }
  std::printf("%d of %d elements are wrong\n", wrong, kElements);
  return wrong == 0 ? 0 : 1;
}
