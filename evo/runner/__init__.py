"""The loop on Ray: budgets, queue, deadlines, durability, resume. It decides nothing that the search decides."""
