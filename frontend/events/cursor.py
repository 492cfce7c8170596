"""A place in the merged stream: time, then source, then id, newest first."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Self

from django.db.models import Q

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# Rows of one microsecond are ordered by source; the rank is part of the cursor.
RANKS: Final = {"event": 0, "audit": 1}
_SHAPE: Final = re.compile(r"(\d{1,17})\.([01])\.(\d{1,18})")


@dataclass(frozen=True, slots=True, order=True)
class Cursor:
    """The key of one row."""

    at: datetime
    rank: int
    id: int

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Return the cursor that `str()` gave, or None for anything else."""
        match = _SHAPE.fullmatch(text)
        if match is None:
            return None
        return cls(at=EPOCH + timedelta(microseconds=int(match[1])), rank=int(match[2]), id=int(match[3]))

    def __str__(self) -> str:
        microseconds = (self.at - EPOCH) // timedelta(microseconds=1)
        return f"{microseconds}.{self.rank}.{self.id}"

    def older(self, rank: int) -> Q:
        """Return the condition on rows of a source that come after this one in the stream (are older)."""
        return Q(at__lte=self.at) & (
            Q(at__lt=self.at) | Q(**self._same_time(rank, "lt"))
        )  # the first part walks the index

    def newer(self, rank: int) -> Q:
        """Return the condition on rows of a source that come before this one in the stream (are newer)."""
        return Q(at__gte=self.at) & (Q(at__gt=self.at) | Q(**self._same_time(rank, "gt")))

    def _same_time(self, rank: int, side: str) -> dict[str, int]:
        if rank == self.rank:
            return {f"id__{side}": self.id}
        is_on_that_side = rank < self.rank if side == "lt" else rank > self.rank
        return {"id__gte": 0} if is_on_that_side else {"id__lt": 0}
