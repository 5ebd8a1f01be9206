// Compiles the kernels of cross_entropy.cu for the host.
#include "tests/support/cuda_on_host.h"
// Must be included after cuda_on_host.h.
#include "recipes/cuda/cross_entropy.cu"
