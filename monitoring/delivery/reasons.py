"""Why a notification was not sent or a channel is off, where a person or the panel decided so."""

from typing import Final

from monitoring.notifiers.phrases import phrase as _

SWITCHED_OFF: Final = _("The channel was switched off.")
REMOVED: Final = _("The channel was removed.")
LAST_LEFT: Final = _("Its last recipient asked to get no more.")
RECIPIENT_LEFT: Final = _("The recipient asked to get no more.")
