// Compiles the kernels of stem.cu for the host.
#include "tests/support/cuda_on_host.h"
// Must be included after cuda_on_host.h.
#include "models/cuda/stem.cu"
