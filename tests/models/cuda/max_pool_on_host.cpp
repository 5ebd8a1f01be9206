// The kernels of max_pool.cu for kernels_test.
#include "tests/support/cuda_on_host.h"
// After it.
#include "models/cuda/max_pool.cu"
