// The kernels of sgd.cu for kernels_test.
#include "tests/support/cuda_on_host.h"
// After it.
#include "recipes/cuda/sgd.cu"
