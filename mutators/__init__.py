"""What turns parents into a proposal: LLM operators, model clients, offline rules."""
