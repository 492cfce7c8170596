"""What alerts register when the app starts: subjects, series, the live topic, and how episodes are put into words."""


def register_all() -> None:
    """Fill the registries (once, when the app starts)."""
    from monitoring.alerts import derived, live, subjects
    from monitoring.alerts.announcing import PREFIX
    from monitoring.alerts.telling import tell
    from monitoring.delivery.outbox import register_teller

    subjects.register_all()
    derived.register_all()
    live.register_all()
    register_teller(PREFIX, tell)
