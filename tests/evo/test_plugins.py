from __future__ import annotations

import pytest

from evo import plugins
from evo.errors import PluginError

OFFLINE_OPERATOR = """
from __future__ import annotations
from dataclasses import dataclass

@dataclass(frozen=True)
class Echo:
    offline = True
    shout: bool = False

    def step(self, context, history):
        return None
"""

TWIN = OFFLINE_OPERATOR[OFFLINE_OPERATOR.index("@") :].replace("Echo", "Again")


def write(folder, text, name="echo.py"):
    file = folder / name
    file.write_text(text)
    return str(file)


def test_a_path_resolves_to_the_dataclass_in_it(tmp_path):
    plugin = plugins.resolve(plugins.OPERATORS, write(tmp_path, OFFLINE_OPERATOR))
    assert plugin.__name__ == "Echo"
    assert plugin(shout=True).shout


def test_two_files_of_one_name_do_not_mix(tmp_path):
    (tmp_path / "other").mkdir()
    first = plugins.resolve(plugins.OPERATORS, write(tmp_path, OFFLINE_OPERATOR))
    changed = OFFLINE_OPERATOR.replace("Echo", "Other")
    second = plugins.resolve(plugins.OPERATORS, write(tmp_path / "other", changed))
    assert (first.__name__, second.__name__) == ("Echo", "Other")


def test_every_shipped_plugin_resolves_under_the_name_of_its_file():
    for package in (plugins.OPERATORS, plugins.CLIENTS, plugins.DEVICES):
        names = plugins.available(package)
        assert names
        for name in names:
            assert plugins.resolve(package, name).__module__ == f"{package}.{name}"


def test_a_module_that_is_no_plugin_is_not_offered():
    assert "validate" not in plugins.available(plugins.DEVICES)


def test_a_misspelt_name_is_answered_with_the_nearest():
    with pytest.raises(PluginError, match=r"no device is called 'hots'; did you mean 'host'\?"):
        plugins.resolve(plugins.DEVICES, "hots")


def test_a_name_far_from_all_is_answered_with_the_known_ones():
    with pytest.raises(PluginError, match=r"no operator is called 'xyzzy'; known: .*rules"):
        plugins.resolve(plugins.OPERATORS, "xyzzy")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import no_such_module_here", "cannot be imported: ModuleNotFoundError: No module named"),
        ("def broken(:", "cannot be imported: SyntaxError"),
        ("x = 1", "exactly one public frozen dataclass with the methods step; found: none"),
        (OFFLINE_OPERATOR.replace("(frozen=True)", ""), "exactly one public frozen dataclass .* found: none"),
        (OFFLINE_OPERATOR + TWIN, "found: Echo, Again"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_plugin_says_why(tmp_path, text, message):
    with pytest.raises(PluginError, match=message):
        plugins.resolve(plugins.OPERATORS, write(tmp_path, text))


def test_the_cause_of_a_broken_import_is_kept(tmp_path):
    path = write(tmp_path, "1 / 0")
    with pytest.raises(PluginError) as caught:
        plugins.resolve(plugins.OPERATORS, path)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(PluginError, match=r"there is no file .*gone\.py"):
        plugins.resolve(plugins.OPERATORS, str(tmp_path / "gone.py"))


def test_an_entry_point_of_an_installed_package_resolves(tmp_path, monkeypatch):
    write(tmp_path, OFFLINE_OPERATOR, "installed_echo.py")
    info = tmp_path / "installed_echo-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: installed-echo\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[kernel_evo.mutators.operators]\nechoing = installed_echo:Echo\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "echoing" in plugins.available(plugins.OPERATORS)
    assert plugins.resolve(plugins.OPERATORS, "echoing").__name__ == "Echo"
