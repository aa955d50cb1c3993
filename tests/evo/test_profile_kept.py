"""What a run does with a profile: the report goes into its folder, and what keeps ncu from working is said once."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from evo.records import REFERENCE_ID, Evaluation, KernelProfile, Profile, Status
from evo.report.live import Progress
from evo.runner.profiles import Profiles


class Listener:
    def __init__(self) -> None:
        self.heard: list[tuple[str, dict[str, Any]]] = []

    def event(self, kind: str, **facts: Any) -> None:
        self.heard.append((kind, facts))


def shelf(folder: Path) -> tuple[Profiles, Listener]:
    listener = Listener()
    return Profiles(folder, listener), listener


def evaluated(candidate: int, profile: Profile | None) -> Evaluation:
    return Evaluation(candidate, Status.OK, profile=profile)


def test_a_report_lies_in_the_runs_folder_and_no_longer_in_the_verdict(tmp_path: Path) -> None:
    made, listener = shelf(tmp_path)
    profile = Profile("large", (KernelProfile("k"),), base64.b64encode(b"a report").decode())
    kept = [made.keep(evaluated(number, profile)).profile for number in (7, REFERENCE_ID)]
    assert [one.file for one in kept if one] == ["profiles/7.ncu-rep", "profiles/reference.ncu-rep"]
    assert all(one and one.report == "" and one.kernels == profile.kernels for one in kept)
    assert (tmp_path / "profiles/7.ncu-rep").read_bytes() == b"a report"
    assert listener.heard == []


def test_a_reason_is_said_once_however_many_evaluators_have_it(tmp_path: Path) -> None:
    made, listener = shelf(tmp_path)
    for candidate in range(3):
        made.keep(evaluated(candidate, Profile(problem="no profile: ncu is not on PATH")))
    assert listener.heard == [("not_profiled", {"message": "no profile: ncu is not on PATH"})]
    assert Progress().take(*listener.heard[0]) == "no profile: ncu is not on PATH"


def test_a_verdict_without_a_profile_stays_as_it_is(tmp_path: Path) -> None:
    made, _ = shelf(tmp_path)
    assert made.keep(evaluated(1, None)) == evaluated(1, None)
    assert not (tmp_path / "profiles").exists()
