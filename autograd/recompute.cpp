// The forward pass runs f without a tape. The backward pass runs f again on an inner tape to get the activations, and then runs this tape's
// backward pass.
#include "autograd/recompute.h"

#include "autograd/record.h"
#include "core/philox.h"

namespace ricci {
namespace {

// Adds an anchor: an integer tensor without elements that is on the tape. With it, the op is recorded even if all other inputs
// are constants, so the parameters inside f get their gradients.
std::vector<Arg> anchored(std::vector<Arg> inputs) {
  if (Tape* const tape = Tape::recording()) inputs.emplace_back(tape->watch(Tensor({0}, Dtype::i64)));
  return inputs;
}

TapeOptions recording_options() { return Tape::recording() ? Tape::recording()->options() : TapeOptions{}; }

// Returns f(inputs) without recording it. Only recorded results are checked for NaN, so if the tape looks for NaN, f is recorded on a
// temporary tape.
template <class F> auto call_unrecorded(const F& f, std::vector<Tensor> inputs, TapeOptions options) {
  if (!options.find_nonfinite) {
    const NoTape unrecorded;
    return f(inputs);
  }
  Tape searching(options);
  for (Tensor& input : inputs) input = searching.watch(input);
  return f(inputs);
}

// The state that the second run of f needs in addition to its inputs.
struct Replay {
  RandomState random;
  TapeOptions tape;
};

// Runs f again and returns the gradients of its inputs, and an empty one for the anchor.
template <class F> Grads replay(const F& f, const Replay& how, std::vector<Tensor> inputs, const std::vector<Tensor>& dys) {
  const SavedRandomState now;
  set_random_state(how.random);
  Tape tape(how.tape);
  std::vector<bool> watched;
  for (size_t i = 0; i < inputs.size(); ++i) {
    watched.push_back(inputs[i].dtype() != Dtype::i64 && wants_gradient(static_cast<int>(i)));
    if (watched[i]) inputs[i] = tape.watch(inputs[i], gradient_dtype(static_cast<int>(i)));
  }
  std::vector<Tensor> ys, dys_of_ys;
  const std::vector<Tensor> results = f(inputs);
  for (size_t i = 0; i < results.size(); ++i) {
    if (!tape.has(results[i])) continue;
    ys.push_back(results[i]);
    dys_of_ys.push_back(dys[i]);
  }
  tape.backward(ys, dys_of_ys);
  Grads gradients;
  for (size_t i = 0; i < inputs.size(); ++i) gradients.push_back(watched[i] ? tape.gradient_of(inputs[i]) : Tensor());
  gradients.emplace_back();
  return gradients;
}

}  // namespace

using One = std::function<Tensor(const std::vector<Tensor>&)>;
using Two = std::function<std::array<Tensor, 2>(const std::vector<Tensor>&)>;

Tensor recompute(const One& f, const std::vector<Arg>& inputs) {
  const std::vector<Tensor> kept = as_kept(std::vector<Tensor>(inputs.begin(), inputs.end()));
  const RandomState random = random_state();
  const Tensor y = call_unrecorded(f, kept, recording_options());
  const Replay how{random, recording_options()};
  return record("recompute", anchored(inputs), y, keep(f, how, kept),
      [](const Tensor& dy, const One& f, const Replay& how, const std::vector<Tensor>& inputs) -> Grads {
        return replay([&](const std::vector<Tensor>& x) { return std::vector<Tensor>{f(x)}; }, how, inputs, {dy});
      });
}

std::array<Tensor, 2> recompute(const Two& f, const std::vector<Arg>& inputs) {
  const std::vector<Tensor> kept = as_kept(std::vector<Tensor>(inputs.begin(), inputs.end()));
  const RandomState random = random_state();
  const std::array<Tensor, 2> ys = call_unrecorded(f, kept, recording_options());
  const Replay how{random, recording_options()};
  return record("recompute", anchored(inputs), ys, keep(f, how, kept),
      [](const Tensor& dy0, const Tensor& dy1, const Two& f, const Replay& how, const std::vector<Tensor>& inputs) -> Grads {
        auto run = [&](const std::vector<Tensor>& x) {
          const auto [y0, y1] = f(x);
          return std::vector<Tensor>{y0, y1};
        };
        return replay(run, how, inputs, {dy0, dy1});
      });
}

}  // namespace ricci
