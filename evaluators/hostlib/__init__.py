"""The host device's parts: text (`translate`), compiling (`build`, `tools`), running (`jobs`, `explain`).

`device/` is the C++ that kernels see, `runtime/` what runs and checks them.
"""
