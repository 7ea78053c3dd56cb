// The rule of visibility.h against the models' definitions: windows of tokens, and of cells by their first and last token.
#include <vector>

#include "tests/ops/attention/cases.h"
#include "tests/skip.h"

using namespace ricci;

namespace {

// A window lo .. hi of cells of `scale` tokens.
struct Window {
  int64_t scale, lo, hi;
  CellRule rule;
  bool sees(int64_t t, int64_t j) const {
    const int64_t near = t - ((j + 1) * scale - 1), far = t - j * scale;  // the distances of its last and first token
    return near >= lo && (rule == CellRule::inside ? far < hi : near < hi);
  }
  Visibility visibility() const { return Visibility::cells(scale, lo, hi, rule); }
};

std::vector<Window> windows() {
  std::vector<Window> all;
  for (CellRule rule : {CellRule::inside, CellRule::end})
    for (int64_t scale : {1, 2, 3, 4, 16, 64})
      for (auto [lo, hi] : {std::pair<int64_t, int64_t>{0, 8}, {8, 40}, {4, 19}, {0, 1}, {0, 3}, {17, 20}, {0, 200}, {150, 400}})
        all.push_back({scale, lo, hi, rule});
  return all;
}

bool sees_tokens(bool causal, int64_t window, int64_t t, int64_t j) { return (!causal || t - j >= 0) && (window == 0 || t - j < window); }

// The intervals of a visibility contain exactly its visible keys.
bool intervals_agree(const Visibility& sees, int64_t queries, int64_t keys) {
  for (int64_t t = 0; t < queries; ++t)
    for (int64_t j = 0; j < keys; ++j) {
      const bool visible = sees.visible(t, j);
      if ((j >= sees.first_key(t) && j < sees.end_key(t, keys)) != visible) return false;
      if ((t >= sees.first_query(j) && t < sees.end_query(j, queries)) != visible) return false;
    }
  return true;
}

// In every implementation exactly the weights of the visible keys are not zero.
template <class Sees>
void check_weights(
    int64_t queries, int64_t keys, int64_t width, const Visibility& visibility, Dtype dtype, Device device, const Sees& sees) {
  const Values weights = uniform_weights(queries, keys, width, visibility, dtype, device);
  for (int64_t t = 0; t < queries; ++t)
    for (int64_t j = 0; j < keys; ++j)
      if ((weights[static_cast<size_t>(t * width + j)] > 0) != sees(t, j))
        FAIL("scale ", visibility.cell, ", least ", visibility.least, ", most ", visibility.most, ": query ", t, ", key ", j);
}

}  // namespace

TEST_CASE("a window of tokens and a window of cells are visible as the models say") {
  for (bool causal : {true, false})
    for (int64_t window : {0, 1, 3, 65})
      for (int64_t t = 0; t < 80; ++t)
        for (int64_t j = 0; j < 80; ++j)
          if (tokens(causal, window).visible(t, j) != sees_tokens(causal, window, t, j))
            FAIL("causal ", causal, ", window ", window, ": ", t, ", ", j);
  for (const Window& window : windows())
    for (int64_t t = 0; t < 300; ++t)
      for (int64_t j = 0; j < 300 / window.scale; ++j)
        if (window.visibility().visible(t, j) != window.sees(t, j)) FAIL(window.scale, ", ", window.lo, ":", window.hi, ": ", t, ", ", j);
}

TEST_CASE("without a window every complete cell is visible, and cells of one token are tokens") {
  const Visibility sees = Visibility::cells(4);
  for (int64_t t = 0; t < 50; ++t)
    for (int64_t j = 0; j < 12; ++j) CHECK(sees.visible(t, j) == ((j + 1) * 4 - 1 <= t));
  for (int64_t t = 0; t < 20; ++t)
    for (int64_t j = 0; j < 20; ++j) {
      CHECK(Visibility::cells(1).visible(t, j) == Visibility::causal().visible(t, j));
      for (CellRule rule : {CellRule::inside, CellRule::end})
        CHECK(Visibility::cells(1, 0, 7, rule).visible(t, j) == Visibility::causal(7).visible(t, j));
    }
}

TEST_CASE("the keys of a query and the queries of a key are intervals, also for queries from a position on") {
  for (bool causal : {true, false})
    for (int64_t window : {0, 1, 5, 64}) CHECK(intervals_agree(tokens(causal, window), 70, 66));
  for (const Window& window : windows()) {
    CHECK(intervals_agree(window.visibility(), 150, 150 / window.scale + 3));
    CHECK(intervals_agree(window.visibility().from(37), 60, 150 / window.scale));
    CHECK(window.visibility().from(37).visible(20, 5) == window.visibility().visible(57, 5));
  }
}

TEST_CASE("which keys a query sees, of every implementation: f64, f32, and bf16 with the width of flash attention") {
  on_every_device([](Device device) {
    for (bool causal : {true, false})
      for (int64_t window : {0, 1, 3, 65})
        check_weights(70, 70, 70, tokens(causal, window), Dtype::f64, device,
            [&](int64_t t, int64_t j) { return sees_tokens(causal, window, t, j); });
    int turn = 0;
    for (const Window& of : windows()) {
      if (++turn % 3 != 0 && device == Device::cuda_emulated && !test::everything()) continue;  // two or three of eight windows
      const auto sees = [&](int64_t t, int64_t j) { return of.sees(t, j); };
      const bool is_bf16 = of.scale == 2 || of.scale == 4 || of.scale == 64;
      const int64_t queries = is_bf16 ? 270 : 150, keys = std::min<int64_t>(queries / of.scale, is_bf16 ? 128 : 70);
      check_weights(
          queries, keys, is_bf16 ? keys > 96 ? 128 : 96 : keys, of.visibility(), is_bf16 ? Dtype::bf16 : Dtype::f32, device, sees);
    }
    for (int64_t window : {0, 40})
      check_weights(
          200, 96, 96, tokens(false, window), Dtype::bf16, device, [&](int64_t t, int64_t j) { return sees_tokens(false, window, t, j); });
    check_weights(70, 128, 128, Visibility::causal(100).from(60), Dtype::bf16, device,
        [&](int64_t t, int64_t j) { return sees_tokens(true, 100, 60 + t, j); });
  });
}

TEST_CASE("a visibility says what is wrong with its numbers") {
  CHECK(message_of([] { Visibility::causal(-1); }) == "attention: window is -1, expected 0 (none) or more");
  CHECK(message_of([] { Visibility::not_causal(-2); }) == "attention: window is -2, expected 0 (none) or more");
  CHECK(message_of([] { Visibility::cells(0); }) == "attention: the cell size is 0, expected 1 .. 16777216");
  CHECK(message_of([] { Visibility::cells(1 << 25); }) == "attention: the cell size is 33554432, expected 1 .. 16777216");
  CHECK(message_of([] { Visibility::cells(4, -1); }) == "attention: the window of cells starts -1 tokens back, expected 0 or more");
  CHECK(message_of([] { Visibility::cells(4, 8, 8); }) == "attention: the window of cells is 8 to 8, expected an end after the start");
}

TEST_CASE("a window of the largest numbers is one without an end") {
  const Tensor x_bcd = drawn({1, 70, 8}, Dtype::f32, Device::cpu, 1), dy_bcd = drawn({1, 70, 8}, Dtype::f32, Device::cpu, 2);
  const auto gradient = [&](const Visibility& sees) {
    return gradients_of(
        [&](const std::vector<Tensor>& in) { return attention({in[0]}, {in[0]}, {in[0]}, sees, {.heads = 2}); }, {x_bcd}, dy_bcd)[0];
  };
  CHECK(same_bits(gradient(Visibility::causal(INT64_MAX)), gradient(Visibility::causal())));
  CHECK(same_bits(gradient(Visibility::not_causal(INT64_MAX)), gradient(Visibility::not_causal())));
  for (CellRule rule : {CellRule::inside, CellRule::end}) {
    CHECK(same_bits(gradient(Visibility::cells(4, 0, INT64_MAX, rule)), gradient(Visibility::cells(4))));
    const Tensor nothing = gradient(Visibility::cells(4, INT64_MAX - 1, INT64_MAX, rule));  // no token sees a cell from this distance
    CHECK(same_bits(nothing, zeros_like(x_bcd)));
  }
}
