"""Which models are so much alike that they tell no more than one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

JACKKNIFE_WORDS = "from a jackknife that leaves out all models of one family and kind of training at a time"


def relatives(table: pd.DataFrame) -> list[str]:
    """By row a label that models of one family and kind of training share: ten ResNets under adversarial training.

    Neither alone would do: published grids hold many ResNets, trained in all ways, and many ways to train, each for
    all families. A model of unknown family is its own.

    Args: table: with `model`, `family` and `model_type`.
    """
    families = table["family"].fillna(table["model"]).astype(str)
    return [f"{family}/{kind}" for family, kind in zip(families, table["model_type"].fillna(""), strict=True)]
