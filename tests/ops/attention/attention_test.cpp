// attention and its backward are held to the definition on every device, wherever queries, keys and values stand.
#include <cmath>
#include <vector>

#include "autograd/gradcheck.h"
#include "tests/ops/attention/cases.h"

using namespace ricci;

namespace {

void check_case(const Case& of, Device device) {
  CAPTURE(of.text());
  const ForwardAndBackward expected = run(naive_attention, of, Dtype::f64, Device::cpu), got = run(attention, of, Dtype::f64, device);
  CHECK(distance(got.y, expected.y) < 1e-12);
  REQUIRE(got.gradients.size() == expected.gradients.size());
  for (size_t i = 0; i < got.gradients.size(); ++i) CHECK(distance(got.gradients[i], expected.gradients[i]) < 1e-12);
}

// Queries, keys and values in every place, where there are as many queries as keys or not.
std::vector<Case> placed(const Case& of) {
  std::vector<Case> all;
  for (Place place : all_places()) {
    if (in_one_tensor(place) && of.key_count() != of.c) continue;
    all.push_back(of);
    all.back().place = place;
  }
  return all;
}

std::vector<Case> cases_of_views() {
  const auto causal = Visibility::causal, not_causal = Visibility::not_causal;
  std::vector<Case> all;
  const auto add = [&](const Case& of) {
    for (const Case& one : placed(of)) all.push_back(one);
  };
  add({2, 9, 2, 5, causal(0)});
  add({1, 67, 1, 12, causal(0), 0.3});
  add({2, 70, 2, 20, not_causal(6), 0, {66, 3}});
  add({1, 5, 2, 9, not_causal(0), 0, {}, Place::three_tensors, 71});  // fewer queries than keys
  add({1, 71, 2, 9, causal(0), 0.2, {}, Place::three_tensors, 5});    // more
  add({1, 3, 1, 4, causal(9).from(60), 0, {}, Place::three_tensors, 66});
  add({2, 30, 1, 8, causal(0), 0, {}, Place::three_tensors, 30, 0.2});  // another scale of the scores
  return all;
}

std::vector<Case> cases_of_cells() {
  const auto cells = Visibility::cells;
  const CellRule inside = CellRule::inside, end = CellRule::end;
  std::vector<Case> all;
  const auto add = [&](int64_t b, int64_t c, int64_t keys, const Visibility& sees, double dropout = 0, std::vector<int64_t> lengths = {}) {
    for (Place place : {Place::three_tensors, Place::keys_are_values, Place::wider_tensors})
      all.push_back({b, c, 2, 7, sees, dropout, lengths, place, keys});
  };
  add(1, 13, 3, cells(4, 0, Visibility::kEndless, inside));
  add(2, 150, 37, cells(4, 0, Visibility::kEndless, inside));
  add(1, 150, 75, cells(2, 8, 140, inside));
  add(1, 150, 75, cells(2, 8, 140, end), 0.3);
  add(1, 130, 43, cells(3, 0, 3, inside));     // a window of a single cell, which a third of the queries sees
  add(1, 133, 130, cells(64, 0, 64, inside));  // more cells than there are, for the blocks
  add(1, 130, 32, cells(4, 6, 9, end));        // a window narrower than a cell
  add(2, 70, 17, cells(4, 4, 40, end), 0, {17, 2});
  add(3, 40, 20, cells(2, 1, 30, inside), 0.2, {0, 1, 19});
  add(1, 20, 5, cells(4, 30, 60, inside));  // no query sees a key
  return all;
}

}  // namespace

TEST_CASE("attention and its backward equal the definition on the CPU") {
  for (int64_t c : {1, 2, 7, 63, 64, 65, 130, 257})
    for (bool causal : {true, false})
      for (int64_t window : {0, 1, 5, 64, 100}) check_case({1, c, 2, 16, tokens(causal, window)}, Device::cpu);
  for (int64_t width : {1, 2, 3, 15, 17, 31, 32, 33, 48, 64, 65, 80, 100, 128, 256, 300})
    for (bool causal : {true, false}) check_case({2, 67, 1 + width % 3, width, tokens(causal)}, Device::cpu);
  for (int64_t c : {1, 2, 3, 7, 66, 133})
    for (int64_t window : {0, 5}) check_case({2, c, 3, 8, tokens(c % 2 == 1, window), 0.3}, Device::cpu);
  for (int64_t c : {1, 7, 64, 65, 130, 257})
    for (bool causal : {true, false})
      for (int64_t window : {0, 5, 100}) check_case({5, c, 2, 9, tokens(causal, window), 0, {c, 0, 1, c / 2, c - 1}}, Device::cpu);
}

TEST_CASE("attention and its backward equal the definition on every device") {
  on_every_device([](Device device) {
    for (const Case& of : std::vector<Case>{{1, 1, 1, 1}, {2, 2, 3, 5}, {1, 7, 2, 16, tokens(false)}, {1, 63, 1, 32}, {2, 64, 2, 8},
             {1, 65, 2, 33}, {1, 65, 1, 64, tokens(false)}, {1, 130, 1, 20, tokens(true, 40)}, {1, 130, 2, 20, tokens(false, 40)},
             {1, 130, 1, 4, tokens(true, 1)}, {1, 150, 1, 4, tokens(false, 70)}, {1, 70, 1, 72}, {1, 40, 1, 130}, {1, 257, 1, 16},
             {1, 20, 1, 300, tokens(false)}, {2, 67, 2, 6, tokens(true), 0.3}, {1, 30, 2, 40, tokens(false, 9), 0.5},
             {4, 7, 2, 5, tokens(true), 0, {7, 3, 0, 1}}, {3, 130, 1, 33, tokens(true, 40), 0, {64, 129, 2}},
             {2, 130, 2, 20, tokens(false), 0, {65, 63}}, {2, 66, 1, 130, tokens(false, 9), 0, {66, 5}},
             {2, 67, 2, 6, tokens(true), 0.3, {66, 1}}})
      check_case(of, device);
  });
}

TEST_CASE("queries, keys and values in one tensor, in two and in three, also as the same columns") {
  on_every_device([](Device device) {
    for (const Case& of : cases_of_views()) check_case(of, device);
  });
}

TEST_CASE("attention to cells of a scale equals the definition on every device") {
  on_every_device([](Device device) {
    for (const Case& of : cases_of_cells()) check_case(of, device);
  });
}

TEST_CASE("the gradient of attention agrees with finite differences") {
  const auto f = [](const std::vector<Parameter>& x) {
    const auto [q, k, v] = thirds(x[0]);
    return std::vector<Tensor>{attention(q, k, v, Visibility::not_causal(3), {.heads = 2})};
  };
  const GradCheck result = gradcheck(f, {Parameter{draw({1, 9, 18}, 5), {}, "qkv"}});
  CAPTURE(result.worst_at);
  CHECK(result.worst < 1e-7);
  CHECK(result.least_norm > 0);
}

TEST_CASE("a tensor that is named for each view gets the same gradient as one that is named once") {
  const Case of{2, 9, 2, 4};
  const Parameter x{of.inputs()[0], {}, "qkv"};
  const int64_t d = of.d();
  {
    Tape tape;  // each conversion of a parameter is a leaf of its own
    const Tensor y = attention({x, 0, d}, {x, d, d}, {x, 2 * d, d}, of.sees, of.options());
    tape.backward(y, of.dy());
  }
  CHECK(distance(x.grad, run(naive_attention, of, Dtype::f64, Device::cpu).gradients[0]) < 1e-12);
}

TEST_CASE("the heads of a projection may be shared out to several attentions") {
  on_every_device([](Device device) {
    const Case whole{1, 20, 3, 4, Visibility::causal(), 0, {}, Place::three_tensors};
    const std::vector<Tensor> inputs = as(whole.inputs(), Dtype::f64, device);
    const Tensor dy = to(whole.dy(), device);
    const ForwardAndBackward expected = run(naive_attention, whole, Dtype::f64, Device::cpu);
    std::vector<Parameter> x;
    for (const Tensor& t : inputs) x.push_back({t, {}, "input"});
    Tape tape;
    const std::vector<Arg> of(x.begin(), x.end());
    std::vector<Tensor> ys, dys;
    for (auto [first, heads] : {std::pair<int64_t, int64_t>{0, 1}, {1, 2}}) {
      const auto view = [&, first = first, heads = heads](size_t i) { return Rows{of[i], first * whole.width, heads * whole.width}; };
      ys.push_back(attention(view(0), view(1), view(2), whole.sees, {.heads = heads}));
      const ViewElement y(Rows{expected.y}), got(Rows{ys.back()}), all_dy(Rows{dy});
      Values values;
      for (int64_t t = 0; t < whole.c; ++t)
        for (int64_t n = 0; n < heads * whole.width; ++n) {
          CHECK(std::abs(got(0, t, n) - y(0, t, first * whole.width + n)) < 1e-12);
          values.push_back(all_dy(0, t, first * whole.width + n));
        }
      dys.push_back(tensor_of(values, ys.back().shape(), Dtype::f64, device));
    }
    tape.backward(ys, dys);
    for (size_t i = 0; i < x.size(); ++i) CHECK(distance(x[i].grad, expected.gradients[i]) < 1e-12);
  });
}
