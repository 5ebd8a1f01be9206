// The kernels of normalize.cu for kernels_test.
#include "tests/support/cuda_on_host.h"
// After it.
#include "data/torch/cuda/normalize.cu"
