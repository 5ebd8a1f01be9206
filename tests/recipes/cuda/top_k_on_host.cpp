// Compiles the kernels of top_k.cu for the host.
#include "tests/support/cuda_on_host.h"
// Must be included after cuda_on_host.h.
#include "recipes/cuda/top_k.cu"
