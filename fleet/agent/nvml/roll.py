"""The cards that this agent has met: so that one which is lost, gone or unreadable is told of, never left out."""

from collections.abc import Iterable, Sequence

from fleet.agent.nvml.card import Card, GpuReading


class Roll:
    """Known cards and instances by UUID, with what was last known of each."""

    def __init__(self) -> None:
        self._known: dict[str, GpuReading] = {}

    def meet(self, cards: Iterable[Card]) -> None:
        """Add cards, or follow them to another index."""
        for card in cards:
            known = self._known.setdefault(card.uuid, GpuReading(card.uuid, card.index))
            known.index = card.index

    def remember(self, readings: Iterable[GpuReading]) -> None:
        """Keep the instances as they are now: those of a card that answered and are not among them were taken apart."""
        read = [reading for reading in readings if reading.sample is not None]
        answered = {reading.uuid for reading in read}
        gone = [uuid for uuid, known in self._known.items() if known.parent_uuid in answered and uuid not in answered]
        for uuid in gone:
            del self._known[uuid]
        for reading in read:
            self._known[reading.uuid] = GpuReading(
                reading.uuid, reading.index, reading.parent_uuid, facts=reading.facts, unsupported=reading.unsupported
            )

    def without_sample(self, uuid: str, state: str, reason: str) -> list[GpuReading]:
        """Return a card and its instances in one state, with nothing read."""
        return [
            _in_state(known, state, reason) for known in self._known.values() if uuid in (known.uuid, known.parent_uuid)
        ]

    def unavailable(self) -> list[GpuReading]:
        """Return everything known while the driver cannot be asked: unknown, not gone."""
        return [_in_state(known, "unknown", "driver_unavailable") for known in self._known.values()]

    def identified(self, refused: Sequence[GpuReading], present: Iterable[Card]) -> list[GpuReading]:
        """Return refused cards; one that can only be the single known card that is not there, under its own UUID."""
        there = {card.uuid for card in present}
        absent = [known for known in self._known.values() if not known.parent_uuid and known.uuid not in there]
        if len(refused) == 1 and len(absent) == 1:
            refusal = refused[0]
            named = _in_state(absent[0], refusal.state, refusal.reason)
            named.index = refusal.index
            return [named]
        return list(refused)

    def missing(self, readings: Iterable[GpuReading]) -> list[GpuReading]:
        """Return the known cards, with their instances, that are not among the readings."""
        listed = {reading.uuid for reading in readings}
        return [
            _in_state(known, "missing", "not_enumerated")
            for known in self._known.values()
            if known.uuid not in listed and known.parent_uuid not in listed
        ]


def _in_state(known: GpuReading, state: str, reason: str) -> GpuReading:
    return GpuReading(
        known.uuid,
        None if state == "missing" else known.index,
        known.parent_uuid,
        state,
        reason,
        facts=known.facts,
        unsupported=known.unsupported,
    )
