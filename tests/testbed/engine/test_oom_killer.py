"""What is said of a worker that was killed, from the counts that the kernel keeps."""

from __future__ import annotations

from pathlib import Path

from testbed.engine.oom_killer import REMEDY, OomKiller

BY_KERNEL = f", by the kernel for lack of memory. {REMEDY}"
PROBABLY = f", probably out of memory. {REMEDY}"


def write(root: Path, file: str, text: str) -> None:
    path = root / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_kill_in_our_control_group_is_the_kernels(tmp_path: Path) -> None:
    write(tmp_path, "proc/self/cgroup", "0::/user.slice/job 7\n")
    write(tmp_path, "sys/fs/cgroup/user.slice/job 7/memory.events", "low 0\noom 1\noom_kill 1\noom_group_kill 0\n")
    killer = OomKiller(tmp_path)
    write(tmp_path, "sys/fs/cgroup/user.slice/job 7/memory.events", "low 0\noom 2\noom_kill 2\noom_group_kill 0\n")
    assert killer.explain() == BY_KERNEL
    assert killer.explain() != BY_KERNEL, "one kill explains one death"


def test_the_older_form_of_control_groups_is_read_as_well(tmp_path: Path) -> None:
    write(tmp_path, "proc/self/cgroup", "5:cpu,cpuacct:/a\n4:memory:/b\n0::/\n")
    write(tmp_path, "sys/fs/cgroup/memory/b/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n")
    killer = OomKiller(tmp_path)
    write(tmp_path, "sys/fs/cgroup/memory/b/memory.oom_control", "oom_kill_disable 0\nunder_oom 1\noom_kill 5\n")
    assert killer.explain() == BY_KERNEL


def test_a_container_sees_its_group_as_the_root(tmp_path: Path) -> None:
    write(tmp_path, "proc/self/cgroup", "0::/../outside\n")
    write(tmp_path, "sys/fs/cgroup/memory.events", "oom_kill 0\n")
    killer = OomKiller(tmp_path)
    write(tmp_path, "sys/fs/cgroup/memory.events", "oom_kill 1\n")
    assert killer.explain() == BY_KERNEL


def test_a_kill_somewhere_on_the_machine_is_probably_ours(tmp_path: Path) -> None:
    write(tmp_path, "proc/vmstat", "pgfault 3\noom_kill 7\n")
    killer = OomKiller(tmp_path)
    write(tmp_path, "proc/vmstat", "pgfault 9\noom_kill 8\n")
    assert killer.explain() == PROBABLY


def test_where_nothing_can_be_read_memory_is_the_first_suspect(tmp_path: Path) -> None:
    assert OomKiller(tmp_path).explain() == PROBABLY


def test_a_kill_that_the_kernel_did_not_count_was_somebody_elses(tmp_path: Path) -> None:
    write(tmp_path, "proc/vmstat", "oom_kill 7\n")
    assert OomKiller(tmp_path).explain().startswith(", and not by the kernel: probably by a limit on memory")
