"""What clouds with regions have in common: one login, a server for each region, ids that name the region."""

import re
from typing import Final

from fleet.providers.base import Provider

# acs:ram::1234567890:user/panel, qcs::cam::uin/100000000001:uin/100000000002: the account stands first, then its user.
_ACCOUNT: Final = re.compile(r"\d{4,}")


class RegionalCloud(Provider):
    """A cloud whose users are named by an ARN."""

    @classmethod
    def login_of(cls, identity: str) -> str:
        """See Provider: the number of the account, which all its users and roles share."""
        found = _ACCOUNT.search(identity)
        return found[0] if found else identity
