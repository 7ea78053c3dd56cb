// Include this header in a file with your kernels, in addition to <ricci/ricci.h>. It declares the verbs that apply a formula to elements,
// rows and columns, the launch of any other kernel, and mathematical functions that are the same on every device. cuda/seam.h explains how
// such a file is compiled twice; ricci_add_kernels() in CMake does it.
#pragma once
#include "core/dtype.h"
#include "cuda/launch.h"
#include "cuda/math.h"
#include "cuda/verbs/chunks.h"
#include "cuda/verbs/columns.h"
#include "cuda/verbs/elements.h"
#include "cuda/verbs/reduce.h"
#include "cuda/verbs/rows.h"
