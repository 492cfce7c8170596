"""Settings, read from the environment alone; every variable stands in docs/configuration.md."""

from panel.settings.base import *  # noqa: F403
