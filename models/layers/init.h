// The initial weights of a model. Each module chooses the distributions of its parameters at construction. Each parameter is sampled on the
// CPU from the seed and its path, so a new layer does not change other weights.
#pragma once
#include <array>
#include <cmath>

#include "models/layers/visit.h"

namespace ricci {

// A well-known model: presets set the defaults of keys and the initial weights.
enum class Preset : uint8_t {
  gpt,    // GPT-2
  msa,    // the masked-self-attention baseline of the Dispatcher paper
  llama,  // Llama's block, with the initial weights of gpt
};
constexpr auto choices(Preset) { return std::array{"gpt", "msa", "llama"}; }

// A parameter without values.
inline Parameter new_parameter(const Shape& shape, Role role, Init init) { return {.value = Tensor(shape), .role = role, .init = init}; }

struct MapInit {
  Init weight{}, bias{};
};

inline Init normal_init(double deviation) { return {Init::Kind::normal, deviation}; }
inline Init uniform_init(double bound) { return {Init::Kind::uniform, bound}; }

// In gpt and llama every weight is N(0, 0.02), and biases are 0. Each of the 2 layers branches adds variance to the residual, so the
// weights of maps into it are divided by sqrt(2 layers). In msa they follow PyTorch's layers: U(+-1/sqrt(inputs)), except as noted here.
struct InitialWeights {
  Preset preset = Preset::gpt;
  int64_t layers = 1;

  Init tokens() const { return gpt() ? normal_init(0.02) : uniform_init(0.1); }
  Init positions(int64_t d) const { return gpt() ? normal_init(0.02) : uniform_bound(d); }
  MapInit output() const { return {tokens(), {}}; }  // to the vocabulary or the classes
  MapInit map(int64_t inputs) const {
    return gpt() ? MapInit{normal_init(0.02), {}} : MapInit{uniform_bound(inputs), uniform_bound(inputs)};
  }
  MapInit into_residual(int64_t inputs) const { return gpt() ? MapInit{residual_init(), {}} : map(inputs); }
  // q, k and v of d columns each in one matrix: in msa Xavier-uniform over its shape [3 d, d].
  MapInit packed_projection(int64_t d) const {
    return {gpt() ? normal_init(0.02) : uniform_init(std::sqrt(6.0 / (4.0 * static_cast<double>(d)))), {}};
  }
  // The other maps of attention. Their biases start at 0 in every preset.
  MapInit attention_input(int64_t d) const { return {map(d).weight, {}}; }
  MapInit attention_output(int64_t d) const { return {into_residual(d).weight, {}}; }

 private:
  bool gpt() const { return preset != Preset::msa; }
  Init residual_init() const { return normal_init(0.02 / std::sqrt(2.0 * static_cast<double>(layers))); }
  static Init uniform_bound(int64_t inputs) { return uniform_init(1 / std::sqrt(static_cast<double>(inputs))); }
};

// Samples the values of a parameter by its `init`, f32 on the CPU, with the random values of its path.
void draw(Parameter& parameter, uint64_t seed);

// Samples every parameter of a module by its path in it, then clears the path. It differs in the containing module.
template <class Module> void draw_parameters(Module& owner, uint64_t seed) {
  for (Parameter* p : parameters_of(owner)) {
    draw(*p, seed);
    p->path.clear();
  }
}

}  // namespace ricci
