from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evo import config, plugins
from evo.errors import ConfigError

OFFLINE = "workload: gemm\noperators: {rules: 1}\n"


def test_a_workload_alone_is_a_whole_config():
    whole = config.load("workload: gemm")
    assert whole.workload == "gemm"
    assert whole.models[0].name == "gpt-5-mini"
    assert whole.models[0].reasoning_effort == "medium"
    assert whole.operators == config.OPERATORS
    assert set(whole.used_operators) == set(plugins.available(plugins.OPERATORS)), "every operator that ships is in use"


@pytest.mark.parametrize("name", config.names())
def test_every_shipped_config_loads_by_its_name(name):
    assert config.load(name).workload


def test_json_is_read_as_well_as_yaml(tmp_path):
    file = tmp_path / "search.json"
    file.write_text(json.dumps({"workload": "gemm", "search": {"islands": 2}}, indent=2))
    assert config.load(file).search.islands == 2


@pytest.mark.parametrize(
    ("override", "read"),
    [
        ("seed=7", lambda c: c.seed == 7),
        ("search.islands=4", lambda c: c.search.islands == 4),
        ("search.islands=auto", lambda c: c.search.islands == "auto"),
        ("budget.minutes=null", lambda c: c.budget.minutes is None),
        ("profile=elites", lambda c: c.profile == "elites"),
        ("timing.cold=false", lambda c: c.timing.cold is False),
        ("models.0.name=ollama/qwen3", lambda c: c.models[0].name == "ollama/qwen3"),
        ("models=[{name: a}, {name: b, weight: 2}]", lambda c: [m.weight for m in c.models] == [1.0, 2.0]),
        ("operators.rules=2", lambda c: c.operators == {**config.OPERATORS, "rules": 2.0}),
        ("operators.repair=1", lambda c: c.operators["repair"] == 1.0),
        ("operators.repair=auto", lambda c: c.operators["repair"] == "auto"),
        ("workload=softmax", lambda c: c.workload == "softmax"),
    ],
)
def test_set_overrides_any_key(override, read):
    assert read(config.load("workload: gemm", [override]))


def test_a_later_override_wins():
    assert config.load("workload: gemm", ["seed=1", "seed=2"]).seed == 2


def test_model_none_leaves_the_offline_rules_alone():
    whole = config.load("workload: gemm\nbudget: {cost_usd: 1}", config.overrides_for_model("none"))
    assert whole.models == ()
    assert whole.operators == {"rules": 1.0}
    assert whole.budget.cost_usd is None


def test_a_model_flag_names_the_one_model():
    whole = config.load("workload: gemm", config.overrides_for_model("anthropic/claude"))
    assert [model.name for model in whole.models] == ["anthropic/claude"]


def test_a_search_without_models_resolves_to_a_config_that_says_so():
    whole = config.load(OFFLINE)
    assert whole.models == ()
    assert whole.budget.cost_usd is None


@given(
    seed=st.integers(0, 2**31),
    islands=st.one_of(st.just("auto"), st.integers(1, 8)),
    minutes=st.one_of(st.none(), st.floats(0.1, 1000)),
    rewrite=st.floats(0.1, 10),
)
def test_a_dumped_config_loads_as_the_same(seed, islands, minutes, rewrite):
    raw = {
        "workload": "gemm",
        "seed": seed,
        "search": {"islands": islands},
        "budget": {"minutes": minutes},
        "operators": {"rewrite": rewrite, "rules": 1},
    }
    whole = config.load(json.dumps(raw))
    assert config.load(config.dump(whole)) == whole


@pytest.mark.parametrize(
    "text",
    [OFFLINE, "workload: gemm\nmodels: [{tools: false}]\n", "workload: gemm\noperators: {rules: 1, repair: auto}\n"],
)
def test_a_resolved_config_loads_again(text):
    whole = config.load(text)
    assert whole.tools.rounds == 0
    assert config.load(config.dump(whole)) == whole


def test_an_automatic_repair_needs_no_model():
    whole = config.load("workload: gemm\nmodels: []\noperators: {rules: 1, repair: auto}\n")
    assert whole.used_operators == ("rules", "repair")
    assert (whole.models, config.arms(whole)) == ((), 1)


BAD = [
    ("", "config: workload: missing; give the name or the folder of a workload"),
    ("- gemm\n", "config, line 1: expected a mapping (key: value), found a list"),
    ("workload: [gemm\n", "config, line 2: expected YAML: "),
    ("seed: 1\n", "config: workload: missing; give the name or the folder of a workload"),
    ("workload: 3\n", "config, line 1: workload: expected text, found 3"),
    ("workload: ''\n", "config, line 1: workload: expected some text, found \"\""),
    ("workload: gemm\nsearhc: {}\n", "config, line 2: searhc: unknown key; did you mean 'search'?"),
    ("workload: gemm\nsearch: {islnds: 2}\n", "line 2: search.islnds: unknown key; did you mean 'islands'?"),
    ("workload: gemm\nsearch: {islands: two}\n", "search.islands: expected a whole number or 'auto', found \"two\""),
    ("workload: gemm\nsearch: {islands: 0}\n", "search.islands: expected a number of at least 1 or 'auto', found 0"),
    ("workload: gemm\nsearch: {order: fixd}\n", "expected 'arrival' or 'fixed', found \"fixd\"; did you mean 'fixed'?"),
    ("workload: gemm\nsearch: 3\n", "config, line 2: search: expected keys with values, found 3"),
    ("workload: gemm\nseed: -1\n", "line 2: seed: expected a number of at least 0, found -1"),
    ("workload: gemm\nseed: 1.5\n", "line 2: seed: expected a whole number, found 1.5"),
    ("workload: gemm\nseed: true\n", "line 2: seed: expected a whole number, found true"),
    ("workload: gemm\nseed: '4'\n", "found the text '4'; write it without quotes"),
    ("workload: gemm\nseed: 1\nseed: 2\n", "config, line 3, key 'seed': expected each key once, found seed twice"),
    ("workload: gemm\n1: 2\n", "config, line 2: 1: unknown key"),
    ("workload: gemm\nbudget:\n  minutes: 1e999\n", "line 3: budget.minutes: expected a finite number"),
    ("workload: gemm\nbudget:\n  minutes: ten\n", "budget.minutes: expected a number, found \"ten\""),
    ("workload: gemm\nbudget:\n  target_speedup: 0.5\n", "budget.target_speedup: expected a number above 1, found 0.5"),
    ("workload: gemm\ntiming: {cold: 1}\n", "timing.cold: expected true or false, found 1"),
    ("workload: gemm\nmodels: gpt-5-mini\n", "models: expected a list, found \"gpt-5-mini\""),
    ("workload: gemm\nmodels: [{nmae: x}]\n", "models.0.nmae: unknown key; did you mean 'name'?"),
    ("workload: gemm\nmodels: [{api_base: 'localhost:1'}]\n", "expected a URL that begins with http:// or https://"),
    ("workload: gemm\nmodels: [{client: litelm}]\n", "no model client is called 'litelm'; did you mean 'litellm'?"),
    ("workload: gemm\nmodels: [{reasoning_effort: hgh}]\n", "did you mean 'high'?"),
    ("workload: gemm\noperators: {rewrit: 1}\n", "operators.rewrit: no operator is called 'rewrit'; did you mean"),
    ("workload: gemm\noperators: {rules: -1}\n", "rules: expected a number of at least 0 or 'auto', found -1"),
    ("workload: gemm\noperators: {rules: atuo}\n", "a number or 'auto', found \"atuo\"; did you mean 'auto'?"),
    ("workload: gemm\noperators: {rules: auto}\n", "operators.rules: expected a number of at least 0, found \"auto\""),
    ("workload: gemm\noperators: {rules: 0}\n", "operators: expected at least one operator with a weight above 0"),
    ("workload: gemm\noperators: {}\n", "operators: expected at least one operator"),
    ("workload: gemm\nmodels: []\n", "operators.rewrite: needs a model and `models` is empty"),
    ("workload: gemm\noperators: {rules: 1}\nmodels: [{name: x}]\n", "line 3: models: would do nothing"),
    ("workload: gemm\noperators: {rules: 1}\nbudget: {cost_usd: 1}\n", "budget.cost_usd: would do nothing"),
    ("workload: gemm\noperators: {rules: 1}\nbudget: {tokens: 9}\n", "budget.tokens: would do nothing: no operator"),
    ("workload: gemm\noperators: {rules: 1}\ntools: {rounds: 2}\n", "tools.rounds: would do nothing: no operator"),
    ("workload: gemm\nmodels: [{tools: false}]\ntools: {rounds: 2}\n", "line 3: tools.rounds: would do nothing: every"),
    ("workload: gemm\noperators: {rules: 1, repair: 1}\n", "operators.repair: would do nothing: it repairs what a"),
    ("workload: gemm\noperators: {crossover: 1}\n", "operators: expected at least one operator with a weight above 0"),
    ("workload: gemm\noperators: {rewrite: 1}\nsearch: {credit: on}\n", "search.credit: would do nothing: there is"),
    ("workload: gemm\nsearch: {credit: true}\n", "search.credit: expected 'auto', 'on' or 'off', found true"),
    ("workload: gemm\nsearch: {islands: 9}\nbudget: {evaluations: 5}\n", "expected at most budget.evaluations (5)"),
    ("workload: gemm\nprofile: elite\n", "profile: expected 'none', 'elites' or 'all', found \"elite\"; did you mean"),
    ("workload: gemm\ndevice: host\nprofile: all\n", "line 3: profile: would do nothing: Nsight Compute looks at"),
    ("workload: gemm\ndevice: hots\n", "line 2: device: no device is called 'hots'; did you mean 'host'?"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), BAD)
def test_a_bad_config_says_what_is_wrong_and_where(tmp_path, text, message):
    file = tmp_path / "config"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        config.load(file)
    assert message in str(caught.value).replace(f"{tmp_path}/", "")


BAD_OVERRIDES = [
    ("search.islands", "--set search.islands: expected key.path=value"),
    ("search.islnds=2", "--set search.islnds=2: search.islnds: unknown key; did you mean 'islands'?"),
    ("seed=x", "--set seed=x: seed: expected a whole number, found \"x\""),
    ("seed=[", "--set seed=[, line 1: expected YAML"),
    ("models.3.name=x", "expected an index from 0 to 0, found 3"),
    ("seed.deep=1", "'deep' lies inside"),
    ("3=1", "expected the name of a key, found the index 3"),
]  # fmt: skip


@pytest.mark.parametrize(("override", "message"), BAD_OVERRIDES)
def test_a_bad_override_says_what_is_wrong(override, message):
    with pytest.raises(ConfigError) as caught:
        config.load("workload: gemm\nseed: 1", [override])
    assert message in str(caught.value)


def test_everything_wrong_is_told_at_once():
    with pytest.raises(ConfigError) as caught:
        config.load("workload: gemm\nseed: x\nbudget: {evaluations: 0}\n")
    assert len(str(caught.value).splitlines()) == 2


def test_a_missing_file_is_answered_with_the_nearest_shipped_config():
    with pytest.raises(ConfigError, match=r"gem: no such file, and no config of that name; did you mean 'gemm'\?"):
        config.load("gem")


@pytest.mark.parametrize(("device", "idle"), [("auto", False), ("cuda", False), ("host", True)])
def test_a_profile_is_idle_where_no_gpu_is(device, idle):
    whole = config.load("workload: gemm", ["profile=all"]).model_copy(update={"device": device})
    assert bool(config.idle_profile(whole)) == idle
    assert config.idle_profile(whole.model_copy(update={"profile": "none"})) == ""
