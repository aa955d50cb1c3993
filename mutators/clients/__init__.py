"""One way to reach a model a file."""
