// The complete library in one header: #include <ricci/ricci.h>. Everything is in namespace ricci.
//   core, cuda   tensors, devices, random numbers, errors
//   autograd     the tape, how an op records itself, recomputation, gradient checks
//   ops          formulas on tensors
//   models       layers, the families of models, training, evaluation, decoding, files
// A file with kernels also includes <ricci/kernels.h>. For nvcc, this header omits the models.
#pragma once
#include "autograd/gradcheck.h"
#include "autograd/recompute.h"
#include "autograd/record.h"
#include "core/dims.h"
#include "core/error.h"
#include "core/philox.h"
#include "core/random.h"
#include "core/tensor.h"
#include "core/view.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"
#include "ops/attention/attention.h"
#include "ops/elements/activations.h"
#include "ops/elements/arithmetic.h"
#include "ops/elements/dropout.h"
#include "ops/embedding/embedding.h"
#include "ops/metric/metric.h"
#include "ops/pooling/window_mean.h"
#include "ops/products/products.h"
#include "ops/rotary/rotary.h"
#include "ops/rows/cross_entropy.h"
#include "ops/rows/layer_norm.h"
#include "ops/rows/reduce.h"
#include "ops/rows/rms_norm.h"
#include "ops/rows/softmax.h"
#include "ops/shapes/shape_ops.h"
#include "ops/shift_and_sum/shift_and_sum.h"

#ifndef __CUDACC__
#include "models/inference/evaluation.h"
#include "models/inference/sampling.h"
#include "models/layers/block.h"
#include "models/layers/layers.h"
#include "models/model.h"
#include "models/training/checkpoint.h"
#include "models/training/optimizer.h"
#include "models/training/schedule.h"
#include "models/training/train_step.h"
#endif
