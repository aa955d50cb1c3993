"""The words that operators put around kernels: rules, workload, device, kernels, what was tried, what to do.

Text only, from records; no model is called and no reply is read here. Hidden cases may not enter: they are left out
here even where a caller has not, and everything that others wrote is quoted in fences.
"""
