// Compiles the kernels of max_pool.cu for the host.
#include "tests/support/cuda_on_host.h"
// Must be included after cuda_on_host.h.
#include "models/cuda/max_pool.cu"
