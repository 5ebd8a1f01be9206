// Compiles the kernels of batch_norm_*.cu for the host.
#include "tests/support/cuda_on_host.h"
// Must be included after cuda_on_host.h.
#include "models/cuda/batch_norm_backward.cu"
#include "models/cuda/batch_norm_forward.cu"
