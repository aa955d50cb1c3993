from __future__ import annotations

import dataclasses
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evo.errors import HeaderError
from evo.kernel import parse, replace_header
from evo.records import Launch
from tests.support.kernels import DEVICE, GEMM, gemm_workload

WORKLOAD = gemm_workload()
CASE = WORKLOAD.cases[0]
FUNCTION = GEMM.split("*/\n", 1)[1]


def headed(header: str, code: str = FUNCTION) -> str:
    return f"/* launch\n{header}\n*/\n{code}"


def planned(header: str, code: str = FUNCTION, **changes):
    return parse(headed(header, code)).plan(dataclasses.replace(WORKLOAD, **changes), CASE, DEVICE)


# --- plans --------------------------------------------------------------------------------------------------------


def test_a_plan_has_numbers_only():
    plan = parse(GEMM).plan(WORKLOAD, CASE, DEVICE)
    assert plan.launches == (Launch("gemm", (3, 13, 1), (32, 8, 1), 1024, ("A", "B", "C", "M", "N", "K")),)
    assert plan.defines == {"BX": 32, "BY": 8, "TM": 1}


def test_a_given_configuration_comes_before_the_defaults():
    plan = parse(GEMM).plan(WORKLOAD, CASE, DEVICE, {"BX": 64})
    assert plan.launches[0].block == (64, 8, 1)
    assert plan.defines == {"BX": 64, "BY": 8, "TM": 1}


def test_the_first_rule_that_holds_chooses_and_the_defaults_fill_up():
    kernel = parse(
        headed(
            "block: BX\ngrid: 1\ntune: {BX: [32, 64, 96], T: [1, 2]}\nchoose:\n"
            '  - {when: "M > 50", set: {BX: 64}}\n  - {when: "M > 10", set: {BX: 96, T: 2}}'
        )
    )
    assert kernel.config_for({"M": 100}) == {"BX": 64, "T": 1}
    assert kernel.config_for({"M": 50}) == {"BX": 96, "T": 2}
    assert kernel.config_for({"M": 1}) == {"BX": 32, "T": 1}


def test_satisfies_tells_what_plan_would_accept():
    kernel = parse(GEMM)
    assert kernel.satisfies({"BX": 64, "BY": 16, "TM": 4}, CASE.dims, DEVICE)
    small = dataclasses.replace(DEVICE, max_shared_bytes=1024)
    assert not kernel.satisfies({"BX": 64, "BY": 16, "TM": 4}, CASE.dims, small)
    wide = parse(GEMM.replace("[16, 32, 64]", "[16, 32, 64, 128]"))
    assert not wide.satisfies({"BX": 128, "BY": 16, "TM": 1}, CASE.dims, DEVICE)


def test_launches_workspaces_zero_and_computed_arguments_are_resolved():
    code = """
    extern "C" __global__ void first(const float* A, float* sums, int count) {}
    extern "C" __global__ void second(float* sums, float* C, int M) {}
    """
    plan = planned(
        "launches:\n"
        '  - {kernel: first, block: 64, grid: "num_sms", args: [A, sums, "ceildiv(M, 64)"]}\n'
        '  - {kernel: second, block: [8, 8], grid: [1, 2, 3], shared_bytes: 16, args: "sums, C, M"}\n'
        'workspace: {sums: "4 * ceildiv(M, 64)"}\nzero: [sums, C]',
        code,
    )
    assert plan.launches == (
        Launch("first", (4, 1, 1), (64, 1, 1), 0, ("A", "sums", 2)),
        Launch("second", (1, 2, 3), (8, 8, 1), 16, ("sums", "C", "M")),
    )
    assert plan.workspaces == {"sums": 8}
    assert plan.zero == ("sums", "C")


def test_a_specialised_dim_becomes_a_define_and_is_no_argument():
    plan = planned(
        "block: 32\ngrid: 1\nspecialize: [K]",
        'extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N) {}',
    )
    assert plan.defines == {"K": 3}
    assert plan.launches[0].args == ("A", "B", "C", "M", "N")


def test_options_can_depend_on_tunables():
    header = (
        "block: 32\ngrid: 1\ntune: {REGS: [64, 128], FUSE: [0, 1]}\n"
        'options: ["--maxrregcount=REGS", {option: "--fmad=false", when: "FUSE == 0"}]'
    )
    kernel = parse(headed(header))
    assert kernel.plan(WORKLOAD, CASE, DEVICE).options == ("--maxrregcount=64", "--fmad=false")
    assert kernel.plan(WORKLOAD, CASE, DEVICE, {"REGS": 128, "FUSE": 1}).options == ("--maxrregcount=128",)


def test_fast_math_needs_the_workloads_permission():
    header = "block: 32\ngrid: 1\noptions: --use_fast_math"
    assert planned(header, fast_math=True).options == ("--use_fast_math",)
    with pytest.raises(HeaderError, match="does not permit fast math"):
        planned(header)


def test_blocks_per_sm_is_what_threads_and_shared_memory_leave():
    assert planned('block: 512\ngrid: "blocks_per_sm * num_sms"').launches[0].grid == (16, 1, 1)
    by_shared = planned('block: 32\ngrid: "blocks_per_sm"\nshared_bytes: 20000')
    assert by_shared.launches[0].grid == (2, 1, 1)


def test_a_cluster_must_divide_the_grid():
    assert planned('block: 32\ngrid: "8, 2"\ncluster: "2, 2"\ncooperative: true').cluster == (2, 2, 1)
    with pytest.raises(HeaderError, match=r"expected a cluster that divides the grid \(7, 2, 1\), found \(2, 1, 1\)"):
        planned('block: 32\ngrid: "7, 2"\ncluster: 2')


# --- what a wrong header says -------------------------------------------------------------------------------------

TUNED = "block: 32\ngrid: 1\ntune: {BX: [16, 32], BY: [4, 8]}\n"

BAD_HEADERS = [
    ("grid: 1", "line 2: expected a key 'block', found none; add 'block: …'"),
    ("block: 32\ngird: 1", "line 3, key 'gird': expected one of the keys"),
    ("block: 32\ngird: 1", "found gird; did you mean 'grid'?"),
    ("block: 32\ngrid: 1\ngrid: 2", "line 4, key 'grid': expected each key once, found grid twice; delete one"),
    ("block: 32\ngrid: ceildiv(N 4)", "line 3, key 'grid': in 'ceildiv(N 4)', column 11: expected ')', found '4'"),
    ("block: 32\ngrid: N / 4", "found '/'; use // (floor division) or ceildiv(a, b)"),
    ("block: 32\ngrid: [1, 2, 3, 4]", "line 3, key 'grid': expected one to three expressions (x, y, z), found 4"),
    ("block: true\ngrid: 1", "line 2, key 'block': expected an integer expression"),
    ("block: 32\ngrid: N4", "line 3, key 'grid': in 'N4': unknown name 'N4' at column 1; did you mean 'N'?"),
    (
        "block: 32\ngrid: {x: 1}",
        "key 'grid': expected an integer expression, such as \"ceildiv(N, 256)\", found a mapping",
    ),
    ("block: 1025\ngrid: 1", "line 2, key 'block': expected block.x from 1 to 1024, found 1025 = 1025"),
    ("block: 0\ngrid: 1", "expected block.x from 1 to 1024, found 0"),
    ('block: "1, 1, 65"\ngrid: 1', "expected block.z from 1 to 64, found 65"),
    ('block: "64, 32"\ngrid: 1', "expected at most 1024 threads per block, found 2048 (64, 32, 1)"),
    ("block: 32\ngrid: N - 70", "line 3, key 'grid': expected grid.x from 1 to 2147483647, found 0 = N - 70"),
    ("block: 32\ngrid: 0 - N", "expected grid.x from 1 to 2147483647, found -70"),
    ('block: 32\ngrid: "1, 65536"', "expected grid.y from 1 to 65535, found 65536"),
    (
        "block: 32\ngrid: 1\nshared_bytes: 49153",
        "expected 0 to 49152 bytes of dynamic shared memory on this device, found 49153",
    ),
    ("block: 32\ngrid: 1\nshared_bytes: -4", "line 4, key 'shared_bytes': expected 0 to 49152 bytes"),
    (TUNED + "require: BX > 99", "key 'require': expected 'BX > 99' to hold, found BX=16"),
    (TUNED + "defaults: {BX: 64}", "key 'defaults.BX': expected one of BX's values [16, 32], found 64"),
    (TUNED + "defaults: {BZ: 4}", "key 'defaults.BZ': expected one of the keys BX, BY, found BZ; known: BX, BY"),
    ("block: 32\ngrid: 1\ntune: {BX: []}", "key 'tune.BX': expected 1 to 64 values, found 0"),
    ("block: 32\ngrid: 1\ntune: {BX: [1, 1]}", "expected different values, found [1, 1]"),
    ("block: 32\ngrid: 1\ntune: {BX: 32}", "key 'tune.BX': expected a list [a, b, …], found 32"),
    ("block: 32\ngrid: 1\ntune: {BX: [1.5]}", "key 'tune.BX[0]': expected an integer, found 1.5"),
    ("block: 32\ngrid: 1\ntune: {BX: [4294967296]}", "expected values that fit 32 bits, found 4294967296"),
    (
        "block: 32\ngrid: 1\ntune: {__x: [1]}",
        "expected a tunable's name of letters, digits and _ that begins with a letter",
    ),
    (
        "block: 32\ngrid: 1\ntune: {int: [1]}",
        "line 4, key 'tune.int': expected a name for a tunable that can be a macro, found int, "
        "which is a keyword of C++; rename it",
    ),
    ("block: 32\ngrid: 1\ntune: {blockDim: [1]}", "found blockDim, which means something else in CUDA C++; rename it"),
    ("block: 32\ngrid: 1\nspecialize: [M, _K]", "found _K, which C++ reserves for its compilers; leave it out"),
    ("block: 32\ngrid: 1\nspecialize: [__K]", "key 'specialize[0]': expected a name for a dim that can be a macro"),
    ("block: 32\ngrid: 1\nspecialize: xor", "found xor, which is a keyword of C++; leave it out of 'specialize'"),
    ("block: 32\ngrid: 1\ntune: {num_sms: [1]}", "expected a name for a tunable that is free, found num_sms"),
    (
        "block: 32\ngrid: 1\ntune: {M: [1]}",
        "key 'tune': expected a free name, found 'M', which is a parameter of the workload",
    ),
    (TUNED + 'choose: [{when: "BX == 16", set: {BY: 4}}]', "expected dims of the case only, found BX"),
    (TUNED + "choose: [{set: {BY: 4}}]", "key 'choose[0]': expected a key 'when', found none"),
    (
        TUNED + 'choose: [{when: "Q == 1", set: {BY: 4}}]',
        "key 'choose[0].when': in 'Q == 1': unknown name 'Q' at column 1",
    ),
    ("launches: []", "key 'launches': expected 1 to 32 launches, found 0"),
    ("launches: [{kernel: gem, block: 1, grid: 1}]", "found gem; did you mean 'gemm'?"),
    ('launches: [{kernel: "gemm<4>", block: 1, grid: 1}]', "expected a __global__ function that is no template"),
    ("block: 32\nlaunches: [{kernel: gemm, block: 1, grid: 1}]", "key 'block': expected either 'launches' or this key"),
    ("block: 32\ngrid: 1\nargs: [A, B]", "expected 6 arguments, as gemm declares, found 2 (A, B)"),
    (
        "block: 32\ngrid: 1\nargs: [A, B, D, M, N, K]",
        "key 'args[2]': expected a parameter, a workspace, a dim or a tunable, found 'D'",
    ),
    (
        "block: 32\ngrid: 1\nworkspace: {w: 0}",
        "key 'workspace.w': expected 1 to 17179869184 bytes of workspace, found 0",
    ),
    ("block: 32\ngrid: 1\nworkspace: {A: 4}", "key 'workspace': expected a free name, found 'A'"),
    ("block: 32\ngrid: 1\nzero: [A]", "key 'zero': expected an output or a workspace, found 'A'"),
    ("block: 32\ngrid: 1\ncooperative: 1", "key 'cooperative': expected true or false, found 1"),
    ("block: 32\ngrid: 1\noptions: [-I/etc]", "expected a compiler option of the allow-list, found -I/etc"),
    ("block: 32\ngrid: 1\noptions: [--maxregcount=4]", "did you mean '--maxrregcount'?"),
    ("block: 32\ngrid: 1\noptions: [--maxrregcount=4]", "expected --maxrregcount from 16 to 255, found 4"),
    ("block: 32\ngrid: 1\noptions: [--fmad=yes]", "expected --fmad= one of true, false, found yes"),
    ("block: 32\ngrid: 1\nspecialize: [Q]", "key 'specialize': expected a dim of the workload, found 'Q'"),
    ("block: 32\n grid: 1", "line 3: expected YAML"),
    (
        " * block: 32",
        "line 2: expected YAML: found '*', which YAML reads as an alias; quote it, and begin no line with '*'",
    ),
    ("block: &a 32\ngrid: *a", "found '*', which YAML reads as an alias"),
    ("{block: 32, grid: 1}", "expected one key per line, found braces around all; remove them"),
    ("[" * 3000, "expected YAML, found brackets nested too deep"),
    ("---\nblock: 1", "expected no document marks"),
    ("- 1", "line 2: expected a mapping (key: value), found a list"),
    ("block: 32\ngrid: 1 #" + "x" * 70000, "expected at most 65536 characters of YAML"),
]


@pytest.mark.parametrize(("header", "message"), BAD_HEADERS, ids=[message[:60] for _, message in BAD_HEADERS])
def test_a_wrong_header_says_line_key_expected_found(header: str, message: str):
    with pytest.raises(HeaderError) as caught:
        planned(header)
    assert str(caught.value).startswith("launch header")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (FUNCTION, "expected a comment that begins with '/* launch'"),
        ('const char* s = "/* launch */";' + FUNCTION, "found none; put it above the kernel"),
        ("/* launch block: 32 */" + FUNCTION, "line 1: expected a line break after '/* launch'"),
        (
            headed("block: 1\ngrid: 1") + "/* launch\nblock: 2\n*/",
            "expected one /* launch */ comment, found 2; delete one",
        ),
        ("/* launch\nblock: 1", "expected '*/' after it, found the end of the file"),
        (headed("block: 1\ngrid: 1", "int f();"), "expected one __global__ function in the source, found none"),
        (
            headed("block: 1\ngrid: 1", "__global__ void a() {} __global__ void b() {}"),
            "found a, b; say which to launch with 'launches'",
        ),
        (headed("block: 1\ngrid: 1") + " " * (1 << 18), "expected at most 262144 bytes of source"),
    ],
)
def test_a_source_without_a_usable_header_says_so(source: str, message: str):
    with pytest.raises(HeaderError) as caught:
        parse(source)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"BQ": 4}, "expected a tunable, found 'BQ'; did you mean 'BY'?"),
        ({"BX": 48}, "expected BX out of [16, 32, 64], found 48"),
    ],
)
def test_a_configuration_outside_the_header_is_refused(config: dict[str, int], message: str):
    with pytest.raises(HeaderError) as caught:
        parse(GEMM).plan(WORKLOAD, CASE, DEVICE, config)
    assert str(caught.value).startswith("launch configuration: ")
    assert message.split(";")[0] in str(caught.value)


# --- hashes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("C[0] = A[0] + B[0];", "C[0]=A[0]+B[0];"),
        ("C[0] = A[0] + B[0];", "/* same */ C[0] = A[0] +\n B[0]; // same"),
        ("// A comment above.\n", ""),
        ('block: "BX, BY"', "block: [BX, (BY)]"),
        ("{BX: 32, BY: 8, TM: 1}", "{TM: 1, BY: 8, BX: 32}"),
        ("[16, 32, 64]", "[64, 32, 16]"),
        ('["BX * BY <= 1024", "BX * BY % 32 == 0"]', '["(BX*BY) % 32 == 0", "BX * BY <= 1024"]'),
        ("# kept", "# other"),
    ],
)
def test_spelling_does_not_change_the_hash(old: str, new: str):
    assert old in GEMM
    assert parse(GEMM.replace(old, new)).hash == parse(GEMM).hash


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("A[0] + B[0]", "A[0] - B[0]"),
        ("A[0] + B[0]", "A[0] + +B[0]"),
        ("{BX: 32, BY: 8, TM: 1}", "{BX: 32, BY: 8, TM: 2}"),
        ("[1, 2, 4]", "[1, 2, 4, 8]"),
        ("BX * BY <= 1024", "BX * BY <= 512"),
        ("set: {BX: 64, BY: 4, TM: 4}", "set: {BX: 64, BY: 4, TM: 2}"),
        ('grid: "ceildiv(N, BX)', 'grid: "ceildiv(M, BX)'),
    ],
)
def test_meaning_changes_the_hash(old: str, new: str):
    assert old in GEMM
    assert parse(GEMM.replace(old, new, 1)).hash != parse(GEMM).hash


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ('printf("a b")', 'printf("a  b")', False),
        ("c = ' '", "c = '  '", False),
        ('printf("//x")', 'printf("//y")', False),
        ('R"(a /* b */)"', 'R"(a)"', False),
        ("\n#define F(x) x\n", "\n#define F (x) x\n", False),
        ("\n#define F(x) x // note\n", "\n#  define   F(x) \\\n x\n", True),
        ("\n#pragma unroll 4\n", "\n#pragma unroll 8\n", False),
        ("a+++b", "a + ++b", False),
        ("a+ +b", "a + + b", True),
        ("1'000", "1000", False),
    ],
)
def test_literals_and_preprocessor_lines_keep_their_spacing(one: str, other: str, same: bool):
    first, second = (parse(GEMM.replace("C[0] =", f"{text}; C[0] =")) for text in (one, other))
    assert (first.hash == second.hash) is same


def test_line_numbers_of_code_are_those_of_the_source():
    kernel = parse(GEMM)
    assert len(kernel.code.splitlines()) == len(GEMM.splitlines())
    assert kernel.code.splitlines()[-2] == GEMM.splitlines()[-2]
    assert "launch" not in kernel.code


# --- rewriting ----------------------------------------------------------------------------------------------------


def test_with_choose_replaces_the_rules_and_nothing_else():
    tuned = parse(GEMM).with_choose([({"M": 1, "N": 2}, {"BX": 64, "BY": 4, "TM": 4}), ({"M": 5}, {"BX": 16})])
    assert tuned.source == GEMM.replace(
        'choose:\n  - {when: "M == 4096 and N == 4096", set: {BX: 64, BY: 4, TM: 4}}\n',
        "choose:  # written by tuning; the first match wins, else the defaults\n"
        '  - {when: "M == 1 and N == 2", set: {BX: 64, BY: 4, TM: 4}}\n'
        '  - {when: "M == 5", set: {BX: 16}}\n',
    )
    assert tuned.config_for({"M": 5, "N": 9}) == {"BX": 16, "BY": 8, "TM": 1}


def test_with_choose_leaves_keys_and_comments_behind_the_rules_alone():
    source = headed('block: 32\nchoose:\n  - {when: "M", set: {}}\n# stays\ngrid: 1  # stays too\n')
    assert parse(source).with_choose([]).source == headed("block: 32\n# stays\ngrid: 1  # stays too\n")


@pytest.mark.parametrize("ending", ["\n", "", "   ", "  # last word "])
def test_with_choose_adds_rules_at_the_end_of_any_header(ending: str):
    source = f"/* launch\n  block: BX\n  grid: 1\n  tune: {{BX: [32, 64]}}{ending}*/\n{FUNCTION}"
    tuned = parse(source).with_choose([({"M": 3}, {"BX": 64})])
    assert tuned.config_for({"M": 3}) == {"BX": 64}
    assert tuned.source.endswith(FUNCTION)
    assert tuned.with_choose([({"M": 4}, {"BX": 64})]).config_for({"M": 3}) == {"BX": 32}


def test_with_choose_keeps_windows_line_ends():
    tuned = parse(GEMM.replace("\n", "\r\n")).with_choose([({"M": 3}, {"BX": 64})])
    assert tuned.source.count("\n") == tuned.source.count("\r\n")


_dims = st.dictionaries(st.sampled_from("MNK"), st.integers(1, 10**6), min_size=1)
_configs = st.fixed_dictionaries(
    {"BX": st.sampled_from([16, 32, 64]), "BY": st.sampled_from([4, 8, 16]), "TM": st.sampled_from([1, 2, 4])}
)


@given(st.lists(st.tuples(_dims, _configs), min_size=1, max_size=5))
def test_what_with_choose_writes_config_for_reads(rules):
    tuned = parse(GEMM).with_choose(rules)
    dims, config = rules[0]
    assert tuned.config_for({"M": 1, "N": 1, "K": 1, **dims}) == config
    assert tuned.with_choose([]).source == parse(GEMM).with_choose([]).source


def test_with_header_changes_keys_and_keeps_the_code():
    kernel = parse(GEMM)
    changed = kernel.with_header(choose=None, options=["--maxrregcount=64"], block="BX, BY, 1")
    assert changed.source.split("*/\n")[1] == FUNCTION
    assert changed.header.choose == ()
    assert changed.header.tune == kernel.header.tune
    assert changed.plan(WORKLOAD, CASE, DEVICE).options == ("--maxrregcount=64",)


def test_replace_header_puts_one_on_top_of_a_source_without():
    source = replace_header(FUNCTION, {"grid": "ceildiv(N, 64)", "block": 64, "tune": {"T": [1, 2]}})
    assert source == '/* launch\nblock: 64\ngrid: "ceildiv(N, 64)"\ntune: {T: [1, 2]}\n*/\n' + FUNCTION
    assert parse(source).plan(WORKLOAD, CASE, DEVICE).launches[0].grid == (2, 1, 1)


def test_replace_header_refuses_what_would_end_the_comment():
    with pytest.raises(HeaderError, match="it would end the comment"):
        replace_header(FUNCTION, {"block": "1 */ evil"})


def test_a_kernel_survives_pickling():
    kernel = parse(GEMM)
    again = pickle.loads(pickle.dumps(kernel))
    assert again == kernel
    assert again.plan(WORKLOAD, CASE, DEVICE) == kernel.plan(WORKLOAD, CASE, DEVICE)


# --- text ---------------------------------------------------------------------------------------------------------


def test_kernels_names_launched_functions_once():
    code = (
        "__global__ void a() {}\n__global__ __launch_bounds__(64, 2) void b() {}\n"
        "template <int N> __global__ void c() {}"
    )
    items = ", ".join(f"{{kernel: {name}, block: 1, grid: 1, args: []}}" for name in "bab")
    kernel = parse(headed(f"launches: [{items}]", code))
    assert kernel.kernels == ("b", "a")
    assert [(f.name, f.template) for f in kernel.functions] == [("a", False), ("b", False), ("c", True)]


@given(st.text(alphabet=st.sampled_from("/*\\\"'R()ab#\n lunch_{}<>,;:1.")))
def test_any_text_is_a_kernel_or_a_header_error(text: str):
    try:
        kernel = parse(f"/* launch\nblock: 1\ngrid: 1\n*/\n{text}\n__global__ void k() {{}}")
    except HeaderError:
        return
    assert kernel.kernels
