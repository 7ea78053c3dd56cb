#include "models/init.h"

#include "core/files/hash.h"
#include "core/random.h"
#include "cuda/verbs/arithmetic.h"

namespace ricci {

void draw(Parameter& p, uint64_t seed) {
  const Philox random{seed, hash_bytes(p.path)};
  const auto value = static_cast<float>(p.init.value);
  switch (p.init.kind) {
    case Init::Kind::constant: return fill(p.value, p.init.value);
    case Init::Kind::normal: return fill_normal(p.value.data<float>(), p.value.size(), 0.0f, value, random);
    case Init::Kind::uniform: return fill_uniform(p.value.data<float>(), p.value.size(), -value, value, random);
  }
}

}  // namespace ricci
