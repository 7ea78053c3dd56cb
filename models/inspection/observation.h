// What mixers do with a text and what they have learnt, for people to look at. Everything here goes through the mixers' own formula
// (mix) and parameters: an observation puts a table in the place of the fused op, and a test holds its result to that of the mixer.
#pragma once
#include <vector>

#include "models/embedding.h"
#include "models/mixers/mixers.h"
#include "models/stack.h"
#include "ops/elements/sigmoid.h"

namespace ricci {

// A mixer and a sequence. Empty tensors: the mixer has no such thing.
struct Observation {
  Tensor table_bncC;         // f64 on the CPU: what the value of position C is multiplied by in position c, of every head
  Tensor coefficients_bncr;  // the same, of a Dispatcher: what each level multiplies the values by that it hears
  Tensor y_bcd;              // the table times the values, through the output map: the mixer's output but for rounding
};

// The matrices of a mixer's scores, r_cC = p_c M_n p_C^T / sqrt(k): p is the projection that a form reads, or the whole input.
struct Forms {
  Tensor m_nkK;  // f64 on the CPU; empty: there are none to be looked at
  bool symmetric = false;
};

namespace inspection {

Tensor on_host(const Tensor& t);  // as f64 on the CPU
// The columns of a view as a tensor [b c k].
Tensor columns_of(const Rows& rows);
// sum over C of table_bncC v_bCnk, as [b c d], in the dtype and on the device of v.
Tensor times_values(const Tensor& table_bncC, const Tensor& v_bcd);
// What shift_and_sum multiplies each value by: its results where the values are unit vectors.
Tensor dispatching_table(const Tensor& coef_bcx, int64_t heads);
// Wq_n^T Wk_n of every head, from a packed projection q | k | v.
Tensor query_key_forms(const Tensor& qkv_weight, int64_t heads);

// For every token i of ids and j of the vocabulary, (q_i - q_j) . (p_i - p_j), for every head [n i j]; q and p are those that
// `project` makes of the embeddings of tokens: x_bcd -> {q_bcd, p_bcd}.
using Project = std::function<std::array<Tensor, 2>(const Tensor& ids_bc)>;
Tensor squared_distances(const Tensor& ids_t, int64_t vocab, int64_t heads, const Project& project);

}  // namespace inspection

// Without dropout. y_bcd is that of lengths_b too.
template <Mixer M> Observation observe(const M& mixer, const Tensor& x_bcd, const Tensor& lengths_b) {
  using namespace inspection;
  Observation seen;
  if constexpr (std::is_same_v<M, Dispatcher>) {
    seen.y_bcd = mixer.mix(x_bcd, [&](const Tensor& v_bcd, const Tensor& coef_bcx) {
      seen.coefficients_bncr =
          permute(reshape(on_host(coef_bcx), {coef_bcx.shape()[0], coef_bcx.shape()[1], mixer.config.heads, mixer.levels}), {0, 2, 1, 3});
      seen.table_bncC = dispatching_table(coef_bcx, mixer.config.heads);
      return times_values(seen.table_bncC, v_bcd);
    });
  } else if constexpr (requires { mixer.attending; }) {
    std::vector<Arg> tables;  // quad_full attends once for every head
    seen.y_bcd = mixer.mix(x_bcd, [&](const Rows& q, const Rows& k, const Rows& v) {
      tables.push_back(attention_weights(q, k, mixer.attending.sees, mixer.attending.now(lengths_b)));
      return times_values(tables.back(), columns_of(v));
    });
    seen.table_bncC = concatenate(tables, 1);
  }
  return seen;
}

template <Mixer M> Forms forms_of(const M& mixer) {
  if constexpr (requires { mixer.form.whole(); }) {
    const Tensor m_nkK = mixer.form.whole();
    return {m_nkK ? inspection::on_host(m_nkK) : Tensor(), !std::is_same_v<M, Quad>};
  } else if constexpr (std::is_same_v<M, QuadFull>) {
    return {inspection::on_host(mixer.u_ndD.value), false};
  } else if constexpr (std::is_same_v<M, Sdp>) {
    return {inspection::query_key_forms(mixer.qkv.weight.value, mixer.attending.options.heads), false};
  } else {
    return {};
  }
}

// One observation per block, each with the input that it has in the model.
template <Mixer M> std::vector<Observation> observe(const Stack<M>& stack, const Tensor& x_bcd, const Tensor& lengths_b) {
  std::vector<Observation> all;
  Residual r{x_bcd, {}};
  for (const Block<M>& block : stack.blocks)
    r = block(r, [&](const Tensor& y_bcd) {
      all.push_back(observe(block.mixer, y_bcd, lengths_b));
      return block.mixer(y_bcd, lengths_b);
    });
  return all;
}

// The squared distances of tokens to all others under the metric of every head [n t v], f64 on the CPU: a token stands alone in
// front of the block, without a position. Empty: the mixer's scores are no metric's.
template <Mixer M> Tensor token_distances(const Block<M>& block, const Table& tok, const EmbeddingConfig& config, const Tensor& ids_t) {
  if constexpr (requires { block.mixer.form; } && !std::is_same_v<M, Quad>) {
    const auto project = [&](const Tensor& ids_bc) {
      const Tensor x_bcd = embed(ids_bc, tok, config);
      const Tensor p_bcd = block.mixer.proj_in(block.config.norm == Norm::pre ? block.ln1(x_bcd) : x_bcd);
      return std::array{block.mixer.form.queries(p_bcd), p_bcd};
    };
    return inspection::squared_distances(ids_t, tok.weight.value.shape()[0], block.mixer.attending.options.heads, project);
  }
  return {};
}

}  // namespace ricci
