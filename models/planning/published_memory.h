// The multi-scale paper's analytic memory model (its table 8), beside which measured numbers can be laid. It
// counts the activations of one training step and the weights at 2 bytes, and leaves out gradients of weights, optimizer state and
// f32 masters. For what a step really takes: plan.h.
//   u(L) = 2 B L d bytes: one value per position and width
//   layer over L positions = 3 u (q, k, v) + 2 u (outputs) + 10 u (feed-forward) + a u (norms, dropout, residuals) + scores
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace ricci {

// The form in which the attention's scores are kept.
enum class Scores : uint8_t {
  as_published,  // B L^2, without a factor for the heads
  materialised,  // B h L^2
  fused,         // as flash attention: a maximum and a sum per row, in f32
};

struct PublishedSetting {
  double batch = 64, length = 512, d = 768, heads = 12, vocab = 31300;
  Scores scores = Scores::as_published;
};

// Bytes; 0 where a row of the table is empty. The paper's totals of models are larger than the sum of its cells: they hold one value
// per position, width and layer more.
struct PublishedMemory {
  std::string name;
  double embedding = 0, qkv = 0, scores = 0, projection = 0, feed_forward = 0, norms = 0, logits = 0, hierarchy = 0;
  double in_total_alone = 0;  // that value
  double weights = 0;         // whole model; not part of the total
  double total() const;
};

// The rows of table 8: one layer at the scales 1, 4, 16 and 64; the vanilla model of 12 layers; top-down with 7, 7, 8 and 8 layers
// at 64, 16, 4 and 1; bottom-up with 7, 8 and 8 at 16, 4 and 1; each scale, and their sum.
std::vector<PublishedMemory> published_memory(const PublishedSetting& setting);

}  // namespace ricci
