// The kernels of cross_entropy.cu for kernels_test.
#include "tests/support/cuda_on_host.h"
// Must be included after cuda_on_host.h.
#include "recipes/cuda/cross_entropy.cu"
