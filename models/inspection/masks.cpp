#include "models/inspection/masks.h"

#include "autograd/tape.h"
#include "cuda/device/device.h"
#include "models/mixers/attending.h"
#include "ops/scales/join_upsampled.h"

namespace ricci {

Mask visibility_mask(
    const std::string& layer, const Visibility& sees, int64_t query_tokens, int64_t first_head, int64_t heads, int64_t tokens) {
  const int64_t queries = tokens / query_tokens;
  Mask mask{layer, query_tokens, query_tokens * sees.scale, first_head, heads, {}, queries / sees.scale};
  for (int64_t t = 0; t < queries; ++t) mask.rows.push_back({sees.first_key(t), sees.end_key(t, mask.keys)});
  return mask;
}

Mask attention_mask(const Attending& attending, int64_t query_tokens, int64_t tokens) {
  return visibility_mask("attention", attending.sees, query_tokens, 0, attending.options.heads, tokens);
}

// Every coarse cell gives its number, counted from 1; a row that hears none is 0.
Mask joined_mask(int64_t query_tokens, int64_t key_tokens, int64_t shift, int64_t tokens) {
  const int64_t queries = tokens / query_tokens, keys = tokens / key_tokens, ratio = key_tokens / query_tokens;
  Mask mask{"join", query_tokens, key_tokens, 0, 0, {}, keys};
  const NoTape unrecorded;
  const Tensor numbers_bmx({1, keys, ratio}, Dtype::f64);
  for (int64_t i = 0; i < keys * ratio; ++i) numbers_bmx.data<double>()[i] = static_cast<double>(i / ratio + 1);
  const Tensor joined_bce =
      join_upsampled(zeros({1, queries, 1}, Dtype::f64, Device::cpu), numbers_bmx, zeros({1}, Dtype::f64, Device::cpu), shift);
  for (int64_t t = 0; t < queries; ++t) {
    const auto number = static_cast<int64_t>(joined_bce.data<double>()[2 * t + 1]);
    mask.rows.push_back({number - 1 < 0 ? 0 : number - 1, number});
  }
  return mask;
}

}  // namespace ricci
