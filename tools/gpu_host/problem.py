"""The exception that ends gpu_check with an exit code, and the function that prints its messages."""

EXIT_FAILED, EXIT_USAGE, EXIT_ENVIRONMENT = 1, 2, 6


class Problem(Exception):
    """Ends gpu_check with an exit code and one message."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


def say(text):
    print(f"gpu_check: {text}", flush=True)
