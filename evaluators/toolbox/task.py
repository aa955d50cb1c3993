"""What the tools of one task work on, and how they say that a call cannot be answered as it stands."""

from __future__ import annotations

from dataclasses import dataclass

from evaluators.device import DevicePlugin
from evo import plugins
from evo.records import Device, Relative, Workload


class Unfit(Exception):
    """A call cannot be answered as it stands; the message tells the model what was expected."""


@dataclass(frozen=True)
class Task:
    """See `evaluators.toolbox.use`."""

    device_name: str
    device: Device
    workload: Workload
    parent: Relative

    def plugin(self) -> DevicePlugin:
        """Return the run's device plug-in; raises `PluginError`."""
        made: DevicePlugin = plugins.resolve(plugins.DEVICES, self.device_name)()
        return made
