"""How networks compute is part of a result: it is asked for, stored, named wherever it matters, and reported on."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import Command, Done


def evaluate(command: Command, *arguments: object, **variables: str) -> Done:
    return command("eval.py", "--models", "digits-linear", "--limit", 40, "--db", "--quiet", *arguments, **variables)


def test_results_in_two_arithmetics_are_two_results_that_are_told_apart(command: Command) -> None:
    noise = ("--eval-settings", "digits-mscr-linf", "--draws", 2, "--workers", 0)
    assert "digits-linear  digits@limit40" in evaluate(command, *noise).out
    half = evaluate(command, *noise, "--precision", "bf16")
    assert "stored already" not in half.err
    assert "digits-linear (bfloat16 on cpu)  digits@limit40" in half.out
    assert "digits-linear (bfloat16 on cpu) loses" in " ".join(half.out.split())
    single = evaluate(command, *noise, "--precision", "fp32")  # which is what the CPU computes in anyway
    assert "120 of 120 samples are stored already" in single.err
    assert "digits-linear (float32 on cpu)  digits@limit40" in single.out

    report = command("db.py", "--precision-report")
    assert report.code == 0
    rows = [line.split() for line in report.out.splitlines() if line.startswith("digits-linear")]
    assert [row[1:8] for row in rows] == [
        [setting, "bfloat16", "on", "cpu", "float32", "on", "cpu"]
        for setting in ("digits-mscr-linf@limit40", "digits@limit40")
    ]


def test_a_precision_that_cannot_work_is_refused_before_anything_runs(command: Command, tmp_path: Path) -> None:
    done = evaluate(command, "--eval-settings", "digits", "--workers", 1, "--precision", "tf32")
    assert done.code == 2
    assert "--precision tf32 is a format of CUDA devices" in done.err
    assert not (tmp_path / "results").exists()


def test_a_batch_size_is_found_once(command: Command, tmp_path: Path) -> None:
    arguments = ("--eval-settings", "digits", "--limit", 8, "--workers", 0, "--batch-size", "auto")
    first, second = (evaluate(command, *arguments, TESTBED_HOME=str(tmp_path / "home")) for _ in range(2))
    assert (first.code, second.code) == (0, 0)
    assert "Measuring the best batch size on cpu, 1 to find." in first.err
    assert "Measuring" not in second.err
    assert "8 of 8 samples are stored already" in second.err
