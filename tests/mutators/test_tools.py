"""What models are told of their tools, and that whoever answers expects the same."""

from __future__ import annotations

import json

from evaluators.toolbox.arguments import ARGUMENTS
from evo.records import Device
from mutators import tools

GPU = Device("cuda", "NVIDIA H200", "f", "sm_90a")


def test_counters_are_offered_only_where_a_profiler_looks() -> None:
    assert [tool.name for tool in tools.available(GPU, profiled=False)] == ["compile", "disassemble"]
    assert [tool.name for tool in tools.available(GPU, profiled=True)] == ["compile", "disassemble", "counters"]
    assert all(tools.TOOLS[tool.name] is tool for tool in tools.available(GPU, profiled=True))


def test_the_described_arguments_are_those_that_are_read() -> None:
    assert tools.TOOLS.keys() == ARGUMENTS.keys()
    for name, tool in tools.TOOLS.items():
        schema = tool.parameters
        assert (schema["type"], schema["additionalProperties"]) == ("object", False)
        assert schema["properties"].keys() == ARGUMENTS[name].keys()
        assert set(schema["required"]) == {key for key, argument in ARGUMENTS[name].items() if argument.required}
        for key, argument in ARGUMENTS[name].items():
            assert schema["properties"][key]["type"] == ("array" if argument.many else "string")
            assert schema["properties"][key]["description"]


def test_descriptions_are_short_enough_to_be_sent_with_every_request() -> None:
    said = [{"description": tool.description, "parameters": tool.parameters} for tool in tools.TOOLS.values()]
    assert len(json.dumps(said)) < 4000
    assert all(len(tool.description) < 1024 for tool in tools.TOOLS.values())  # OpenAI's limit
