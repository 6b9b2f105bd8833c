"""Comparisons of a plan's evaluations with their clean parents, each made as soon as both are complete."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from testbed.engine.preflight import Ready, identity
from testbed.results import store_comparison
from testbed.store.evaluation import Evaluation
from testbed.store.store import Store

MAX_PARENTS = 16  # whose labels are kept in memory: models are evaluated a few at a time


class Comparisons:
    """Looks a clean evaluation up once for many that are compared with it.

    Args:
        evaluations: of the plan.
        store: that they are in.
    """

    def __init__(self, evaluations: Sequence[Ready], store: Store) -> None:
        self._store = store
        self._named = {
            (ready.pairing.model.name, ready.pairing.setting.name, ready.pairing.seed): ready for ready in evaluations
        }
        self._parents: OrderedDict[object, Evaluation] = OrderedDict()
        self._done: set[object] = set()

    def make(self, ready: Ready) -> None:
        """Stores how an evaluation compares with its clean parent, where both are complete and that is not stored."""
        pairing = ready.pairing
        parent = self._named.get((pairing.model.name, pairing.clean or "", pairing.seed))
        if parent is None or (pair := (identity(ready), identity(parent))) in self._done:
            return
        clean = self._parent(parent)
        shifted = clean and self._complete(ready)
        if clean is None or shifted is None:
            return
        if clean.id not in shifted.comparisons():
            store_comparison(self._store, shifted, clean)
        self._done.add(pair)

    def _parent(self, ready: Ready) -> Evaluation | None:
        key = identity(ready)
        if (found := self._parents.get(key) or self._complete(ready)) is None:
            return None
        self._parents[key] = found
        self._parents.move_to_end(key)
        if len(self._parents) > MAX_PARENTS:
            self._parents.popitem(last=False)
        return found

    def _complete(self, ready: Ready) -> Evaluation | None:
        """The stored evaluation, if it is complete."""
        state = self._store.find_evaluation(ready.key)
        if state is None or state.status != "complete":
            return None
        return self._store.evaluation_by_id(state.id)
