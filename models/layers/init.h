// The initial weights of a model. Each parameter is sampled on the CPU from the seed and its path, so a new layer does not change other
// layers' weights.
#pragma once
#include <array>
#include <cmath>

#include "models/layers/visit.h"

namespace ricci {

// A preset sets the defaults of keys and the initial weights as in a well-known model.
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

// With gpt and llama, weights are sampled from N(0, 0.02), and biases are 0. Each of the 2 * layers branches adds variance to the residual
// stream, so the weights of maps into it are divided by sqrt(2 layers). With msa, weights and biases are sampled as in PyTorch's layers,
// from U(+-1/sqrt(inputs)), except as noted here.
struct InitialWeights {
  Preset preset = Preset::gpt;
  int64_t layers = 1;

  Init tokens() const { return gpt() ? normal_init(0.02) : uniform_init(0.1); }
  Init positions(int64_t d) const { return gpt() ? normal_init(0.02) : uniform_bound(d); }
  MapInit output() const { return {tokens(), {}}; }  // for the map to the vocabulary or the classes
  MapInit map(int64_t inputs) const {
    return gpt() ? MapInit{normal_init(0.02), {}} : MapInit{uniform_bound(inputs), uniform_bound(inputs)};
  }
  MapInit into_residual(int64_t inputs) const { return gpt() ? MapInit{residual_init(), {}} : map(inputs); }
  // For q, k and v, of d columns each, in one matrix: with msa, Xavier-uniform for its shape [3 d, d].
  MapInit packed_projection(int64_t d) const {
    return {gpt() ? normal_init(0.02) : uniform_init(std::sqrt(6.0 / (4.0 * static_cast<double>(d)))), {}};
  }
  // For the other maps of attention. Their biases start at 0 with every preset.
  MapInit attention_input(int64_t d) const { return {map(d).weight, {}}; }
  MapInit attention_output(int64_t d) const { return {into_residual(d).weight, {}}; }

 private:
  bool gpt() const { return preset != Preset::msa; }
  Init residual_init() const { return normal_init(0.02 / std::sqrt(2.0 * static_cast<double>(layers))); }
  static Init uniform_bound(int64_t inputs) { return uniform_init(1 / std::sqrt(static_cast<double>(inputs))); }
};

// Samples the values of a parameter from its `init`, f32 on the CPU. They depend on the seed and the path.
void draw(Parameter& parameter, uint64_t seed);

// Samples every parameter of a module by its path in the module, then clears the path: the path differs in a containing module.
template <class Module> void draw_parameters(Module& owner, uint64_t seed) {
  for (Parameter* p : parameters_of(owner)) {
    draw(*p, seed);
    p->path.clear();
  }
}

}  // namespace ricci
