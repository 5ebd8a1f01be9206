// The kernels of sgd.cu for kernels_test.
#include "tests/support/cuda_on_host.h"
// Must be included after cuda_on_host.h.
#include "recipes/cuda/sgd.cu"
