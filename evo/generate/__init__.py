"""From a description, and whatever parts somebody has, to a whole workload: the missing parts asked for and checked."""
