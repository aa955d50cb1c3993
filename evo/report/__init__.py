"""What a person sees of a run: pictures, summaries, the live display."""
