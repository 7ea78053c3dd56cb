#pragma once
#include "autograd/arg.h"

namespace ricci {

// y_bcd = scale * table_vd[ids_bc] + positions_Cd[first_position + c]; an empty positions_Cd adds nothing. ids_bc is i64, and positions_Cd
// can have more rows than c. The gradients of the table and of the positions are dense.
// Errors: an id is outside 0 .. v-1 (the message names its position), a position is outside the table, the inputs differ in dtype or
// device.
// On cuda the op does not wait for the kernel that finds a bad id: the row of y for this id is NaN, and check_embedding_ids throws.
Tensor embedding(const Arg& ids_bc, const Arg& table_vd, const Arg& positions_Cd, double scale = 1, int64_t first_position = 0);

// The fixed positions of the transformer (Vaswani et al. 2017, section 3.5), [context width], computed in f64:
//   pe[t, 2i] = sin(t w_i),  pe[t, 2i+1] = cos(t w_i),  w_i = 10000^(-2i/width)
// The table is a constant. If the width is odd, the last column is a sine.
Tensor sinusoidal_positions(int64_t context, int64_t width, Dtype dtype, Device device);

// Throws if embedding found an id outside the vocabulary on this device since the last call. Waits for the device. Call it where the
// program waits anyway: after it reads the loss or the gradient norm.
void check_embedding_ids(Device device);

}  // namespace ricci
