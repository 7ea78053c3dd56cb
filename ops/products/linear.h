// The gradients of a linear map's parameters, for ops that contain one.
#pragma once
#include "autograd/record.h"

namespace ricci {

struct MapGradients {
  Tensor dw_fd, dbias_f;  // empty where not wanted
};

// dw_fd = dy_rf x_rd and dbias_f = sum_r dy_rf of y_rf = x_rd w_fd + bias_f, inside a backward. w_input is the number of its input w_fd,
// bias_input the number of bias_f, or -1 without a bias.
MapGradients map_gradients(const Tensor& dy_rf, const Tensor& x_rd, const Tensor& w_fd, int w_input, int bias_input);

}  // namespace ricci
