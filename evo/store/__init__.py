"""A run on disk: its database (`store` over `database`, `rows`, `schema`) and its folder (`rundir`)."""

from evo.store.store import Store

__all__ = ["Store"]
