"""What a run looks like to a person: pictures, summaries, derived files, and the display while it runs."""
