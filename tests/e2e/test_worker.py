"""The worker of the profile ``command``, a real process with a real daemon and a real repository: its Works from their
delivery to their acceptance.
"""

from __future__ import annotations

import hashlib

from tests.support.worker import Bench, receipt


def test_a_script_in_the_context_runs_and_its_commit_is_submitted(bench: Bench) -> None:
    """Nobody touches anything between the Host's assignment and the review."""
    bench.works()
    work = bench.give("#!/bin/sh\necho hello\necho new > made\n", title="make it")
    shown = bench.until(work, "phase=review")
    body = receipt(shown)
    revision = bench.repo.git("rev-parse", "firm/crew/bob")
    assert (body["candidate_revision"], body["report_only"], body["outcome"]) == (revision, False, "completed")
    assert [each["answer"] for each in body["criteria"]] == ["met", "met"]
    assert body["check_refs"] == ["the script in its context: exit status 0"]
    assert bench.repo.git("show", f"{revision}:made") == "new"
    assert bench.repo.git("log", "-1", "--format=%an|%ae|%s", revision) == (
        f"bob|{bench.crew.agents['bob']}@firm.invalid|make it"
    )
    log = bench.logs / work / "1-3.log"
    assert log.read_bytes() == b"hello\n"
    assert body["artifact_refs"] == [f"{log}@sha256:{hashlib.sha256(b'hello' + bytes([10])).hexdigest()}"]
    assert bench.worker is not None
    assert bench.worker.shown.read_bytes() == b"hello\n"
    accepted = bench.host(f"firm work accept {work} --expected-version 4 --receipt-id {shown['work']['receipt_id']}")
    assert accepted["resolution"] == "accepted"


def test_a_failing_program_is_sent_back_and_the_next_attempt_is_accepted(bench: Bench) -> None:
    """Not met is evidence, not an obstacle: the Host decides. The next attempt has the next fence."""
    bench.works(command=["sh", "-c", 'cat > "context-$FIRM_ATTEMPT"; exec test -e allowed'])
    work = bench.give("for the reader")
    first = bench.until(work, "phase=review")
    body = receipt(first)
    assert (body["outcome"], {each["answer"] for each in body["criteria"]}) == ("failed", {"not_met"})
    assert body["check_refs"][0].endswith(": exit status 1")
    (bench.folder / "allowed").write_text("")
    bench.host(f"firm work request-changes {work} --expected-version 4 --reason red")
    bench.operator.until(f"work:{work}.version>6")
    second = bench.shown(work)
    assert [(each["fence"], each["custody"]) for each in second["bindings"]] == [(1, "completed"), (2, "completed")]
    body = receipt(second)
    assert (body["outcome"], body["fence"]) == ("completed", 2)
    names = bench.repo.git("ls-tree", "--name-only", body["candidate_revision"]).split()
    assert names == ["allowed", "context-1", "context-2", "file"]
    assert bench.repo.git("show", f"{body['candidate_revision']}:context-2") == "for the reader"
    line = f"firm work accept {work} --expected-version 7 --receipt-id {second['work']['receipt_id']}"
    assert bench.host(line)["resolution"] == "accepted"


def test_nothing_left_behind_is_a_report_only(bench: Bench) -> None:
    bench.works(command=["true"])
    body = receipt(bench.until(bench.give(""), "phase=review"))
    assert (body["candidate_revision"], body["report_only"]) == ("", True)


def test_a_commit_of_the_programs_own_is_the_candidate(bench: Bench) -> None:
    bench.works(command=["git", "-c", "user.name=x", "-c", "user.email=x", "commit", "-qm", "own", "--allow-empty"])
    body = receipt(bench.until(bench.give(""), "phase=review"))
    assert body["candidate_revision"] == bench.repo.git("rev-parse", "firm/crew/bob")


def test_nothing_is_committed_on_a_branch_of_a_person(bench: Bench) -> None:
    """In the shared folder: what lies there may be theirs."""
    bench.works(command=["touch", "made"], folder=bench.repo.root)
    before = bench.repo.git("rev-parse", "main")
    body = receipt(bench.until(bench.give(""), "phase=review"))
    assert (body["candidate_revision"], body["report_only"]) == ("", True)
    assert "in no commit: made" in body["result_summary"]
    assert bench.repo.git("rev-parse", "main") == before


def test_a_folder_without_git_is_good_enough(bench: Bench) -> None:
    bench.works(command=["touch", "made"], folder=bench.temporary)
    body = receipt(bench.until(bench.give(""), "phase=review"))
    assert (body["report_only"], (bench.temporary / "made").exists()) == (True, True)


def test_a_program_that_cannot_start_blocks_its_work_until_it_is_resumed(bench: Bench) -> None:
    bench.works()
    work = bench.give("#!/nowhere/at/all\n")
    shown = bench.until(work, "condition=blocked")
    assert "cannot be started" in shown["work"]["reason"]
    bench.host(f"firm work update {work} --expected-version 4 --context '#!/bin/true'")
    bench.host(f"firm work resume {work} --expected-version 5 --resolution corrected")
    assert receipt(bench.until(work, "phase=review"))["outcome"] == "completed"


def test_no_program_at_all_blocks_with_both_ways_and_the_next_work_goes_on(bench: Bench) -> None:
    bench.works()
    work = bench.give("only words")
    reason = bench.until(work, "condition=blocked")["work"]["reason"]
    assert "#!" in reason
    assert "FIRM_COMMAND" in reason
    other = bench.give("#!/bin/true", title="another")
    bench.until(other, "phase=review")
    bench.host(f"firm work update {work} --expected-version 4 --context '#!/bin/true'")
    bench.host(f"firm work resume {work} --expected-version 5 --resolution corrected")
    bench.until(work, "phase=review")


def test_a_program_knows_its_work_and_not_the_capability(bench: Bench) -> None:
    """It is below the member's process, so it is the member, and needs none."""
    bench.works(FIRM_CAPABILITY="secret", FIRM_MEMBER_RUN_ID="of the envelope")
    work = bench.give("#!/bin/sh\nenv | grep ^FIRM_ | sort\n", title="say it")
    bench.until(work, "phase=review")
    assert bench.worker is not None
    said = dict(line.split("=", 1) for line in bench.worker.shown.read_text().splitlines())
    assert "FIRM_CAPABILITY" not in said
    wanted = {"FIRM_WORK_ID": work, "FIRM_WORK_VERSION": "3", "FIRM_WORK_TITLE": "say it", "FIRM_ATTEMPT": "1"}
    assert wanted.items() <= said.items()
    assert said["FIRM_MEMBER_RUN_ID"] == "of the envelope"


def test_hooks_of_the_repository_do_not_run(bench: Bench) -> None:
    bench.repo.hook("pre-commit", bench.temporary / "told")
    bench.repo.git("config", "commit.gpgsign", "true")
    bench.works(command=["touch", "made"])
    body = receipt(bench.until(bench.give(""), "phase=review"))
    assert (body["report_only"], (bench.temporary / "told").exists()) == (False, False)


def test_a_commit_that_git_refuses_blocks_the_work(bench: Bench) -> None:
    """What the program left is not lost and not called a report."""
    bench.works(command=["sh", "-c", 'touch made "$(git rev-parse --git-dir)/index.lock"'])
    work = bench.give("")
    reason = bench.until(work, "condition=blocked")["work"]["reason"]
    assert "index.lock" in reason
    assert (bench.folder / "made").exists()
