// The rows of table_test.cpp, in the order of their names, about the first gradient check of each op.
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace ricci {

struct OpRow {
  std::string op;
  std::string other_dtype;     // what it says about a first input of integers for floats, or of floats for integers; empty: it takes it
  std::set<std::string> zero;  // what it says to an extent of 0
  std::set<std::string> one;   // what it says to an extent of 1
  int64_t unread = 0;          // elements of inputs that are not looked at: a NaN there shows in no output
  int64_t without_weight = 0;  // elements that, when they are infinite, get a weight of 0 or divide to 0
};

inline const std::vector<OpRow> kOpRows = {
    {"add", "add: a[3 5] is i64, expected f32, f64 or bf16", {}, {}},
    {"attention", "attention: q_bcx[2 7 18] is i64, expected f32, f64 or bf16", {"attention: q[2 7 0] does not have the columns 0 .. 5"},
        {"attention: q[2 7 1] does not have the columns 0 .. 5"}, 0, 23},
    {"bag_cross_entropy", "bag_cross_entropy: logits_bmv[2 4 5] is i64, expected f32, f64 or bf16",
        {"bag_cross_entropy: id 3 at [0 0] is outside the vocabulary of 0",
            "bag_cross_entropy: logits_bmv[2 0 5] of 0 cells, but ids_bc[2 14] have 4 of 3 tokens",
            "bag_cross_entropy: logits_bmv[2 4 5] of 4 cells, but ids_bc[2 0] have 0 of 3 tokens"},
        {"bag_cross_entropy: id 3 at [0 0] is outside the vocabulary of 1",
            "bag_cross_entropy: logits_bmv[2 1 5] of 1 cells, but ids_bc[2 14] have 4 of 3 tokens",
            "bag_cross_entropy: logits_bmv[2 4 5] of 4 cells, but ids_bc[2 1] have 0 of 3 tokens"},
        10},
    {"cast", "cast: x[3 5] is i64, expected f32, f64 or bf16", {}, {}},
    {"cell_max", "cell_max: x_bcd[2 7 5] is i64, expected f32, f64 or bf16", {}, {}, 10},
    {"cell_mean", "cell_mean: x_bcd[2 7 5] is i64, expected f32, f64 or bf16", {}, {}, 10},
    {"cell_windows", "cell_windows: x_bcd[2 7 3] is i64, expected f32, f64 or bf16", {}, {}, 6},
    {"classifier_loss", "classifier_loss: x_rd[7 5] is i64, expected f32, f64 or bf16",
        {"classifier_loss: target 3 at row 0 is outside the vocabulary of 0"},
        {"classifier_loss: target 3 at row 0 is outside the vocabulary of 1"}, 10},
    {"coefficients_within", "coefficients_within: coef_bcx[1 8 4] is i64, expected f32, f64 or bf16",
        {"coefficients_within: index b is 0 in coef_bcx[0 8 4] but 1 in starts_bc[1 8]",
            "coefficients_within: index c is 0 in coef_bcx[1 0 4] but 8 in starts_bc[1 8]"},
        {"coefficients_within: index c is 1 in coef_bcx[1 1 4] but 8 in starts_bc[1 8]",
            "coefficients_within: 1 coefficients of a position are not a multiple of 2 heads"},
        12},
    {"concatenate", "concatenate: part 1 is f64 [2 1] on cpu, but part 0 is i64 [2 3] on cpu; index 1 joins them", {}, {}},
    {"contract", "contract: a[3 5] is i64, expected f32, f64 or bf16", {}, {}},
    {"cross_entropy", "cross_entropy: logits_rv[3 301] is i64, expected f32, f64 or bf16",
        {"cross_entropy: target 8 at row 0 is outside the 0 classes"}, {"cross_entropy: target 8 at row 0 is outside the 1 classes"}},
    {"divide", "divide: a[3 5] is i64, expected f32, f64 or bf16", {}, {}, 0, 15},
    {"dropout", "dropout: x[9 7] is i64, expected f32, f64 or bf16", {}, {}},
    {"embedding", "embedding: ids_bc[3 5] is f64, expected i64",
        {"embedding: id 1 at [0 0] is outside the vocabulary of 0", "embedding: positions 2 .. 6 are needed, but positions_Cd[0 7] has 0"},
        {"embedding: id 1 at [0 0] is outside the vocabulary of 1", "embedding: positions 2 .. 6 are needed, but positions_Cd[1 7] has 1"},
        28},
    {"feed_forward", "feed_forward: x_rd[6 5] is i64, expected f32, f64 or bf16", {}, {}},
    {"gated", "gated: x_rd[6 10] is i64, expected f32, f64 or bf16", {},
        {"gated: 1 columns of x_rd[2 3 1] have no halves, a gate and what it multiplies"}},
    {"gelu", "gelu: x[3 7] is i64, expected f32, f64 or bf16", {}, {}},
    {"gelu_tanh", "gelu_tanh: x[3 7] is i64, expected f32, f64 or bf16", {}, {}},
    {"join_upsampled", "join_upsampled: a_bcd[2 11 3] is i64, expected f32, f64 or bf16",
        {"join_upsampled: the 0 columns of z_bmx[2 2 0] are no multiple of the 3 of a_bcd[2 11 3]",
            "join_upsampled: the 12 columns of z_bmx[2 2 12] are no multiple of the 0 of a_bcd[2 11 0]"},
        {"join_upsampled: the 1 columns of z_bmx[2 2 1] are no multiple of the 3 of a_bcd[2 11 3]"}},
    {"layer_norm", "layer_norm: x_rd[15 7] is i64, expected f32, f64 or bf16", {}, {}},
    {"linear", "linear: x_rd[6 5] is i64, expected f32, f64 or bf16", {}, {}},
    {"mean", "mean: x[3 5 7] is i64, expected f32, f64 or bf16", {"mean: no elements to average in [0 5 7]"}, {}},
    {"mean_over_positions", "mean_over_positions: x_bcd[2 7 5] is i64, expected f32, f64 or bf16", {}, {}},
    {"metric_scores", "metric_scores: p_bcd[2 5 8] is i64, expected f32, f64 or bf16",
        {"metric_scores: m_nl[0 10] is a metric of 0 heads of width 4, but p_bcd[0 5 8] has 8 columns",
            "metric_scores: m_nl[2 0] is a metric of 2 heads of width 0, but p_bcd[2 5 8] has 8 columns",
            "metric_scores: m_nl[2 10] is a metric of 2 heads of width 4, but p_bcd[2 5 0] has 0 columns"},
        {"metric_scores: m_nl[1 10] is a metric of 1 heads of width 4, but p_bcd[1 5 8] has 8 columns",
            "metric_scores: m_nl[2 10] is a metric of 2 heads of width 4, but p_bcd[2 5 1] has 1 columns",
            "metric_scores: m_nl[2 1] is a metric of 2 heads of width 1, but p_bcd[2 5 8] has 8 columns"}},
    {"multiply", "multiply: a[3 5] is i64, expected f32, f64 or bf16", {}, {}},
    {"naive_attention", "naive_attention: q_bcx[2 7 18] is i64, expected f32, f64 or bf16",
        {"naive_attention: q[2 7 0] does not have the columns 0 .. 5"}, {"naive_attention: q[2 7 1] does not have the columns 0 .. 5"}, 0,
        11},
    {"permute", "", {}, {}},
    {"recompute", "gelu: x[3 5] is i64, expected f32, f64 or bf16", {}, {}},
    {"relu", "relu: x[3 7] is i64, expected f32, f64 or bf16", {}, {}},
    {"relu2", "relu2: x[3 7] is i64, expected f32, f64 or bf16", {}, {}},
    {"reshape", "gelu: x[2 3 5] is i64, expected f32, f64 or bf16",
        {"reshape: [0 3 5] cannot become [5 6]", "reshape: [2 0 5] cannot become [5 6]", "reshape: [2 3 0] cannot become [5 6]"},
        {"reshape: [1 3 5] cannot become [5 6]", "reshape: [2 1 5] cannot become [5 6]", "reshape: [2 3 1] cannot become [5 6]"}},
    {"residual_layer_norm", "residual_layer_norm: x_rd[15 7] is i64, expected f32, f64 or bf16", {}, {}},
    {"residual_rms_norm", "residual_rms_norm: x_rd[15 8] is i64, expected f32, f64 or bf16", {}, {}},
    {"rms_norm", "rms_norm: x_rd[15 7] is i64, expected f32, f64 or bf16", {}, {}},
    {"rotary", "rotary: x_bcd[2 3 24] is i64, expected f32, f64 or bf16", {"rotary: x_bcd[2 3 0] does not have 5 heads of 4 columns"},
        {"rotary: x_bcd[2 3 1] does not have 5 heads of 4 columns"}, 24},
    {"scale", "scale: x[3 7] is i64, expected f32, f64 or bf16", {}, {}},
    {"shift_and_sum", "shift_and_sum: v_bcd[1 2 1] is i64, expected f32, f64 or bf16", {"shift_and_sum: 0 levels, expected 1 .. 30"}, {}},
    {"sigmoid", "sigmoid: x[3 7] is i64, expected f32, f64 or bf16", {}, {}, 0, 21},
    {"silu", "silu: x[3 7] is i64, expected f32, f64 or bf16", {}, {}},
    {"slice", "", {"slice: 2 .. 5 are not all in index 1 of [3 0 2]"}, {"slice: 2 .. 5 are not all in index 1 of [3 1 2]"}, 24},
    {"softmax", "softmax: x[3 5 7] is i64, expected f32, f64 or bf16", {}, {}},
    {"subtract", "subtract: a[3 5] is i64, expected f32, f64 or bf16", {}, {}},
    {"sum", "sum: x[3 5 7] is i64, expected f32, f64 or bf16", {}, {}},
    {"times_metric", "times_metric: p_bcd[2 5 8] is i64, expected f32, f64 or bf16",
        {"times_metric: m_nl[0 10] is a metric of 0 heads of width 4, but p_bcd[0 5 8] has 8 columns",
            "times_metric: m_nl[2 0] is a metric of 2 heads of width 0, but p_bcd[2 5 8] has 8 columns",
            "times_metric: m_nl[2 10] is a metric of 2 heads of width 4, but p_bcd[2 5 0] has 0 columns"},
        {"times_metric: m_nl[1 10] is a metric of 1 heads of width 4, but p_bcd[1 5 8] has 8 columns",
            "times_metric: m_nl[2 10] is a metric of 2 heads of width 4, but p_bcd[2 5 1] has 1 columns",
            "times_metric: m_nl[2 1] is a metric of 2 heads of width 1, but p_bcd[2 5 8] has 8 columns"}},
    {"window_mean_difference", "window_mean_difference: x_bcd[2 7 5] is i64, expected f32, f64 or bf16", {}, {}},
};

}  // namespace ricci
