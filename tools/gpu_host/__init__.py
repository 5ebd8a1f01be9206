"""The modules of tools/gpu_check. They use only the standard library, because they also run on the GPU host."""
