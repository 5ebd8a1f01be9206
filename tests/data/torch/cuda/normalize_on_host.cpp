// Compiles the kernels of normalize.cu for the host.
#include "tests/support/cuda_on_host.h"
// Must be included after cuda_on_host.h.
#include "data/torch/cuda/normalize.cu"
