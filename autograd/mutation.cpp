#include "autograd/mutation.h"

#ifdef RICCI_MUTATION

#include <string>

#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"

namespace ricci {
namespace {

std::string mutated_op;
size_t mutated_input = 0;
bool happened = false;

}  // namespace

void set_mutation(const char* op, size_t input) {
  mutated_op = op ? op : "";
  mutated_input = input;
  happened = false;
}

bool mutation_happened() { return happened; }

void mutate_gradient(const char* op, size_t input, Tensor& gradient) {
  if (mutated_op != op || mutated_input != input) return;
  happened = true;
  Tensor spoilt = like(gradient);
  copy(spoilt, gradient);
  multiply_by(spoilt, 1.01);
  gradient = spoilt;
}

}  // namespace ricci

#endif
