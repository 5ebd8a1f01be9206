// The kernels of top_k.cu for kernels_test.
#include "tests/support/cuda_on_host.h"
// After it.
#include "recipes/cuda/top_k.cu"
