// Compiles the kernels of dual_norm.cu for the host.
#include "tests/support/cuda_on_host.h"
// Must be included after cuda_on_host.h.
#include "models/cuda/dual_norm.cu"
