#include "models/init.h"

#include "core/random.h"
#include "cuda/arithmetic.h"

namespace ricci {
namespace {

// FNV-1a, 64 bits: a stream number from a name.
uint64_t stream_of(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace

void Draw::constant(Parameter& p, double value) const { fill(p.value, value); }

void Draw::normal(Parameter& p, double deviation) const {
  fill_normal(p.value.data<float>(), p.value.size(), 0.0f, static_cast<float>(deviation), Philox{seed, stream_of(path)});
}

void Draw::uniform(Parameter& p, double bound) const {
  fill_uniform(p.value.data<float>(), p.value.size(), static_cast<float>(-bound), static_cast<float>(bound), Philox{seed, stream_of(path)});
}

}  // namespace ricci
