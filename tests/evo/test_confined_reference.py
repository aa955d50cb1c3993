"""References that a model wrote run in the sandbox: right ones as anywhere else, wrong ones with a message each."""

from __future__ import annotations

import dataclasses
import textwrap
import time

import numpy as np
import pytest

from evo import workload as workloads
from evo.errors import WorkloadError
from evo.records import Workload
from evo.workload.confined import Walls

GEMM = dataclasses.replace(workloads.load("gemm"), generated=("reference",))


def having(body: str) -> Workload:
    text = "import numpy as np\n\n\ndef reference(inputs, dims):\n" + textwrap.indent(textwrap.dedent(body), "    ")
    return dataclasses.replace(GEMM, reference=text)


def failure(body: str, walls: Walls | None = None) -> str:
    workload = having(body)
    case = workload.cases[0]
    with pytest.raises(WorkloadError) as caught:
        workloads.expected(workload, case, workloads.draw_inputs(workload, case, 0), walls)
    return str(caught.value)


def test_a_generated_reference_says_the_same_in_the_sandbox():
    plain = dataclasses.replace(GEMM, generated=())
    for case in GEMM.cases:
        inputs = workloads.draw_inputs(GEMM, case, 0)
        here, there = workloads.expected(plain, case, inputs), workloads.expected(GEMM, case, inputs)
        assert np.array_equal(here.values["C"], there.values["C"])
        assert np.array_equal(here.scale["C"], there.scale["C"])


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("import socket; socket.socket()", "it opened a socket"),
        ("import urllib.request; urllib.request.urlopen('http://127.0.0.1')", "it opened a socket"),
        ("open('/tmp/written', 'w')", "it wrote a file: '/tmp/written'"),
        ("np.save('a.npy', inputs['A'])", "it wrote a file: 'a.npy'"),
        ("open('/etc/passwd').read()", "it read a file: '/etc/passwd'"),
        ("import os; os.mkdir('x')", "it made a folder"),
        ("import os; os.remove('x')", "it deleted a file"),
        ("import os; os.system('ls')", "it started a program"),
        ("import subprocess; subprocess.run(['ls'])", "it started a program"),
        ("import os; os.fork()", "it started a program"),
        ("import os; os.kill(os.getppid(), 9)", "it sent a signal"),
        ("import ctypes; ctypes.CDLL(None).socket(2, 1, 0)", "it called native code through ctypes"),
        ("x = np.ones(1 << 40)", "it used more than 256 MB of memory"),
        ("x = [np.ones(1 << 20) for _ in range(1000)]", "it used more than 256 MB of memory"),
        ("while True: pass", "it did not end in 2 s"),
        ("import os; os._exit(3)", "it ended its process (exit status 3)"),
    ],
)
def test_what_a_reference_must_not_do_has_a_message_each(body: str, message: str):
    said = failure(body, Walls(wall_s=2.0, memory_bytes=256 << 20))
    assert said.startswith("gemm/reference.py, case 'small': ")
    assert message in said


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise ValueError('no')", "gemm/reference.py, line 5, case 'small': ValueError: no"),
        ("inputs['A'][0] = 1", "line 5, case 'small': ValueError: assignment destination is read-only"),
        ("return 3", "expected a dict, found int"),
        ("return {'C': [['a']]}", "expected 'C' of shape (32, 32), found (1, 1)"),
        ("return {'D': np.zeros(1)}", "expected a dict with the keys ['C'], found ['D']"),
        ("return {'C': np.zeros((32, 32), 'f4')}", "expected 'C' as float64, found float32"),
        ("return (", "gemm/reference.py, line 5: expected Python, found '(' was never closed"),
    ],
)
def test_a_faulty_reference_is_told_as_anywhere_else(body: str, message: str):
    assert message in failure(body)


def test_what_is_printed_harms_nothing_and_the_next_case_is_served():
    workload = having("print('hello')\nreturn {'C': inputs['A'].astype(float) @ inputs['B'].astype(float)}")
    for case in workload.cases[:3]:
        inputs = workloads.draw_inputs(workload, case, 0)
        wanted = inputs["A"].astype(float) @ inputs["B"].astype(float)
        assert np.allclose(workloads.expected(workload, case, inputs).values["C"], wanted)


def test_a_child_serves_many_cases():
    case = GEMM.cases[0]
    inputs = workloads.draw_inputs(GEMM, case, 0)
    workloads.expected(GEMM, case, inputs)
    started = time.monotonic()
    for _ in range(20):
        workloads.expected(GEMM, case, inputs)
    assert time.monotonic() - started < 1.0  # 20 starts of Python with NumPy take 3 s
