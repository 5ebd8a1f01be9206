"""What tools/gpu_check is made of. Standard library only: it also runs on the GPU host, where it lies
beside gpu_check in the bundle."""
