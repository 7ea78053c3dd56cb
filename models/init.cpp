#include "models/init.h"

#include "core/files/hash.h"
#include "core/random.h"
#include "cuda/verbs/arithmetic.h"

namespace ricci {
void Draw::constant(Parameter& p, double value) const { fill(p.value, value); }

void Draw::normal(Parameter& p, double deviation) const {
  fill_normal(p.value.data<float>(), p.value.size(), 0.0f, static_cast<float>(deviation), Philox{seed, hash_bytes(path)});
}

void Draw::uniform(Parameter& p, double bound) const {
  fill_uniform(p.value.data<float>(), p.value.size(), static_cast<float>(-bound), static_cast<float>(bound), Philox{seed, hash_bytes(path)});
}

}  // namespace ricci
