"""What a figure is asked to show, and the commands that would store what it lacks."""

from __future__ import annotations

import fnmatch
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from testbed.records import Norm


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Evaluations of one data set under uniform noise in one norm.

    Args:
        norm: of the noise.
        is_shared: noise whose offsets all samples of a draw share, and models that were fitted on such noise.
        dataset: None for the only one that is stored.
        models: names or globs; all models if empty.
        num_samples: of every evaluation; None for the only number that is stored.
    """

    norm: Norm
    is_shared: bool = False
    dataset: str | None = None
    models: Sequence[str] = ()
    num_samples: int | None = None

    @property
    def suffix(self) -> str:
        """What ends the names of settings and files with this noise."""
        return f"{self.norm}{'-shared' if self.is_shared else ''}"

    @property
    def shift_family(self) -> str:
        """The family of the noise, see `testbed.records.Shift`."""
        return f"uniform-{self.suffix}"

    def has_model(self, name: str) -> bool:
        """Whether a model is asked for."""
        return not self.models or any(fnmatch.fnmatchcase(name, pattern) for pattern in self.models)

    def command(self, url: str, *, dataset: str, models: Sequence[str], options: Sequence[str] = ()) -> str:
        """The `eval.py` command that stores evaluations at half the minimal class separation.

        Args:
            url: of the store.
            options: more of `eval.py`, such as seeds.
        """
        settings = ["--eval-settings", f"{dataset}-mscr-{self.suffix}"]
        return shlex.join(["python", "eval.py", "--models", *models, *settings, *options, "--db-url", url])
