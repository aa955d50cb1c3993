"""What turns a candidate into an evaluation: the Ray actor, its harness process, device backends."""
