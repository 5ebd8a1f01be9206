"""What tools/gpu_check is made of. Standard library only: it also runs on the GPU host, where it is
next to gpu_check in the bundle."""
