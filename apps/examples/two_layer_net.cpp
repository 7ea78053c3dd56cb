// A two-layer net learns from your own points and labels: which points of a square are inside a circle.
#include <ricci/ricci.h>
using namespace ricci;

struct Net {
  Linear hidden{2, 32, 1}, output{32, 2, 2};  // inputs, outputs, and the seed of the initial weights
  Tensor operator()(const Arg& x) const { return output(relu(hidden(x))); }
  template <class V> void visit(V&& v) { v("hidden", hidden, "output", output); }
};

int main() {
  std::vector<float> points;
  std::vector<int64_t> inside;
  for (float x = -1; x <= 1; x += 0.125f)
    for (float y = -1; y <= 1; y += 0.125f) {
      points.insert(points.end(), {x, y});
      inside.push_back(x * x + y * y < 0.6f);
    }
  const int64_t count = static_cast<int64_t>(inside.size());
  const Tensor x = tensor_of(points, {count, 2}), labels = tensor_of(inside, {count});
  Net net;
  Optimizer optimizer(parameters_of(net), {.weight_decay = 0});
  for (int step = 0; step <= 200; ++step) {
    Tape tape;
    const Tensor loss = cross_entropy(net(x), labels);
    tape.backward(loss);
    optimizer.step(0.02);  // learning rate
    if (step % 100 == 0) std::printf("step %d: loss %.4f\n", step, item(loss));
  }
  Confusion confusion(2);
  confusion.add(net(x), labels);
  std::printf("%.1f%% of %lld points are right\n", 100 * confusion.accuracy(), static_cast<long long>(count));
}
