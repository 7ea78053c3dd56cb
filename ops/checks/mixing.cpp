#include "autograd/random.h"
#include "ops/checks/checks_list.h"
#include "ops/metric/metric.h"
#include "ops/shift_and_sum/shift_and_sum.h"

namespace ricci {

void add_mixing_checks(std::vector<OpCheck>& all) {
  const auto shift = [&](const char* what, int64_t b, int64_t c, int64_t d, int64_t levels, ShiftAndSumOptions options = {}) {
    all.push_back({"shift_and_sum", what, {normal({b, c, d}), normal({b, c, options.heads * levels})}, [=](CheckInputs in) -> CheckOutputs {
                     set_random_state({5, 3});  // of four levels, this leaves out one
                     return {shift_and_sum(in[0], in[1], options)};
                   }});
  };
  shift("two positions", 1, 2, 1, 1);
  shift("odd sizes, two heads", 2, 7, 10, 3, {.heads = 2});
  shift("more levels than are used", 1, 3, 3, 5);
  shift("fewer levels than positions", 1, 13, 5, 2);
  shift("two walks", 1, 13, 5, 4);
  shift("two walks over more than a vector", 1, 17, 35, 5);
  shift("a level is skipped", 2, 13, 3, 4, {.dropout = 0.5});
  using Metric = Tensor (*)(const Arg&, const Arg&, Triangle);
  for (const auto& [name, f] : {std::pair<const char*, Metric>{"times_metric", times_metric}, {"metric_scores", metric_scores}})
    for (const auto& [what, triangle] : {std::pair{"a symmetric metric", Triangle::upper}, {"a factored metric", Triangle::lower}}) {
      const auto metric = [&all, name = name, what = what, f = f, triangle = triangle](Shape p, int64_t heads) {
        const int64_t k = p[2] / heads;
        all.push_back({name, what, {normal(p), normal({heads, packed_size(k)})},
            [f, triangle](CheckInputs in) -> CheckOutputs { return {f(in[0], in[1], triangle)}; }});
      };
      metric({2, 5, 8}, 2);
      metric({1, 3, 5}, 1);
      metric({2, 1, 3}, 3);
    }
}

}  // namespace ricci
