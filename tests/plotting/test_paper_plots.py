"""All figures in one go: what is stored is drawn, and for the rest one line tells how it would be."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from plotting.drawing import paper_drawing
from plotting.drawing.paper_figures import Job, jobs_of
from plotting.paper_plots import main

from testbed.records import PublishedResult
from testbed.store.store import Store

ROOT = Path(__file__).resolve().parents[2]


def run(database: Path, out: Path, *options: str) -> Result:
    given = ["--db-url", str(database), "--out", str(out), *options]
    return CliRunner().invoke(main, given, standalone_mode=False)


def missing(result: Result) -> dict[str, str]:
    """The lines of what is not drawn, by script."""
    lines = [line.removeprefix("Not drawn: ") for line in result.stderr.splitlines() if line.startswith("Not drawn: ")]
    return {line.split(".py")[0]: line for line in lines}


def publish(database: Path, source: str, *settings: str) -> None:
    with Store.open(database) as store:
        store.put_published([
            PublishedResult(source=source, model="net", eval_setting=name, metric="top1", value=76.0, protocol=source,
                            source_sha256="0" * 64) for name in settings
        ])  # fmt: skip


def test_what_is_stored_is_drawn_with_a_folder_for_each_family_of_fitted_models(matrix: Path, tmp_path: Path) -> None:
    result = run(matrix, tmp_path, "--figures", "accuracy_matrix.py", "natural*", "timm_shifts")
    assert result.return_value == 0
    drawn = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.png")}
    assert drawn == {"forest/accuracy-matrix-points-linf.png"}
    assert str(tmp_path / "forest" / "accuracy-matrix-points-linf.pdf") in result.stdout.splitlines()
    assert f"1 of 3 figures are drawn in {tmp_path}." in result.stderr
    assert "python eval.py --models MODEL --eval-settings val " in missing(result)["natural_shifts"]
    assert "python db.py --import-csv" in missing(result)["timm_shifts"]


def test_an_empty_store_gets_one_line_for_every_figure_with_the_command_to_begin_with(
    database: Path, tmp_path: Path
) -> None:
    Store.open(database).close()
    result = run(database, tmp_path / "figures", "--quiet")
    assert result.return_value == 0
    assert not (tmp_path / "figures").exists()
    told = missing(result)
    assert {"separation", "mscr_against_clean", "convergence", "accuracy_surface", "corruption_curves", "grid", "pm_k",
            "effective_pairs", "model_table", "timm_shifts"} <= set(told)  # fmt: skip
    assert all("python " in line and str(database) in line for line in told.values())
    assert len(result.stderr.splitlines()) == 1 + sum(
        line.startswith("Not drawn: ") for line in result.stderr.splitlines()
    )


def test_each_source_is_drawn_by_itself_in_a_folder_of_its_name(database: Path) -> None:
    publish(database, "grid", "val", "imagenet-a")
    publish(database, "timm", "val")
    with Store.open(database) as store:
        jobs = [job for kind in jobs_of(store, ["grid", "timm"]).values() for job in kind]
    assert {job.folder for job in jobs} == {"grid", "timm"}
    for job in jobs:
        assert job.figure == "timm_shifts" or job.arguments[job.arguments.index("--with-published") + 1] == job.folder
    assert ("--with-published", "grid", "--label-space", "imagenet-1k") in [job.arguments for job in jobs]


def test_shifts_that_only_another_source_has_are_one_line_and_no_advice(database: Path, tmp_path: Path) -> None:
    publish(database, "grid", "val", "stylized_imagenet")
    publish(database, "timm", "val", "imagenet-sketch")
    result = run(database, tmp_path, "--figures", "plot_x_vs_y", "natural_shifts")
    assert (tmp_path / "grid" / "stylized_imagenet-over-val.png").exists()
    assert "timm has no numbers for: Stylized ImageNet." in result.stderr.splitlines()
    told = [line for line in result.stderr.splitlines() if line.startswith("Not drawn: ")]
    assert not any("plot_x_vs_y.py val stylized_imagenet" in line for line in told)
    assert any("plot_x_vs_y.py val avg_pgd --with-published timm" in line for line in told)  # which no source has


def test_every_figure_is_told_before_it_is_drawn_unless_quiet(database: Path, tmp_path: Path) -> None:
    publish(database, "timm", "val")
    told = run(database, tmp_path, "--figures", "grid", "pm_k").stderr.splitlines()
    assert [line for line in told if line.startswith("Figure ")] == [
        "Figure 1 of 2: pm_k.py --with-published timm",
        "Figure 2 of 2: grid.py --with-published timm --label-space imagenet-1k",
    ]
    assert "Figure " not in run(database, tmp_path, "--figures", "pm_k", "--quiet").stderr


def test_several_databases_add_up(matrix: Path, database: Path, tmp_path: Path) -> None:
    publish(database, "timm", "val", "imagenet-a")
    options = ["--db-url", str(database), "--figures", "grid", "mscr_against_clean", "pm_k"]
    result = run(matrix, tmp_path, *options)
    assert result.return_value == 0
    drawn = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.png")}
    assert {"mscr-against-clean-points-linf.png", "timm/grid-imagenet-1k.png"} <= drawn
    assert list(missing(result)) == ["pm_k"]  # nothing is told of figures that one of them allows


def test_a_model_that_a_figure_does_not_show_does_not_keep_it_from_being_drawn(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from testbed.errors import UnknownNameError

    seen = []

    def run_one(place: object, job: Job, out: Path) -> None:
        seen.append(job.arguments)
        if "--highlight" in job.arguments:
            raise UnknownNameError("--highlight mine names none.")

    monkeypatch.setattr(paper_drawing, "_run", run_one)
    job = Job(figure="pm_k", settings=("val",))
    paper_drawing._draw({"db_url": None, "logdir": None}, job, tmp_path, ["mine"])
    assert seen == [("--highlight", "mine"), ()]
    assert "pm_k.py is drawn without --highlight: --highlight mine names none." in capsys.readouterr().err


def test_a_fault_of_ours_is_no_missing_result_and_does_not_stop_the_others(
    matrix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("plotting.drawing.matrix.accuracy_cells", fail)
    result = run(matrix, tmp_path, "--figures", "accuracy_surface", "mscr_against_clean")
    assert result.return_value == 1
    assert (tmp_path / "mscr-against-clean-points-linf.pdf").exists()
    assert "Failed: accuracy_surface.py" in result.stderr


def test_an_unknown_source_is_told_with_the_imported_ones(database: Path, tmp_path: Path) -> None:
    publish(database, "imagenet-testbed", "val")
    result = run(database, tmp_path, "--with-published", "imagenet-testbet")
    assert "Did you mean imagenet-testbed?" in str(result.exception)


def test_the_shell_script_is_the_same_program(tmp_path: Path) -> None:
    script = ROOT / "plotting" / "paper_plots.sh"
    done = subprocess.run([script, "--help"], capture_output=True, text=True, cwd=tmp_path, check=False,
                          env={"PYTHON": sys.executable, "PATH": "/usr/bin:/bin"})  # fmt: skip
    assert done.returncode == 0, done.stderr
    for option in ("--db-url", "--logdir", "--out", "--with-published", "--highlight", "--figures"):
        assert option in done.stdout
