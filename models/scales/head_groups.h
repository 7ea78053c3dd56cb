// The heads of an attention that reads several scales: which scale each of them reads.
#pragma once
#include <cstdint>
#include <vector>

namespace ricci {

// Neighbouring heads of one scale.
struct HeadRun {
  size_t scale;  // its place among the scales
  int64_t first, count;
};

// For each head the place of its scale: neighbouring heads read one scale, in the order of the scales, each as many heads as
// the others; what is left over goes to the finer ones.
inline std::vector<int64_t> divided_heads(int64_t heads, int64_t scales) {
  std::vector<int64_t> scale_of_head;
  for (int64_t s = 0; s < scales; ++s)
    scale_of_head.insert(scale_of_head.end(), static_cast<size_t>(heads / scales + (s < heads % scales)), s);
  return scale_of_head;
}

inline std::vector<HeadRun> head_runs(const std::vector<int64_t>& scale_of_head) {
  std::vector<HeadRun> runs;
  for (size_t head = 0; head < scale_of_head.size(); ++head) {
    const auto scale = static_cast<size_t>(scale_of_head[head]);
    if (runs.empty() || runs.back().scale != scale) runs.push_back({scale, static_cast<int64_t>(head), 0});
    ++runs.back().count;
  }
  return runs;
}

}  // namespace ricci
