// The kernels of top_k.cu for kernels_test.
#include "tests/support/cuda_on_host.h"
// Must be included after cuda_on_host.h.
#include "recipes/cuda/top_k.cu"
