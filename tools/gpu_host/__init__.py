"""The modules of tools/gpu_check. They use only the standard library, because they also run on the GPU host,
where they are next to gpu_check in the bundle."""
