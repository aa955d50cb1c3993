"""One LLM operator a file: a prompt and a parser, both pure."""
