"""Offline rules: rewrites of a kernel that keep its meaning, made on its syntax tree. No model, no network, no device.

One rewrite a file, each a frozen dataclass with `apply`; what they share is in `syntax`, `headers`, `strides` and
`lockstep`.
"""
