"""What a page says, and what it hands to its charts, for tests that read pages."""

import html
import json
import re


def text_of(response):
    """What the page says, without its markup."""
    assert response.status_code == 200, response.status_code
    return re.sub(
        r"\s+", " ", re.sub(r"<(script|style|svg)\b.*?</\1>|<[^>]+>", " ", response.content.decode(), flags=re.DOTALL)
    )


def config_of(response):
    """What a page hands to its charts."""
    return json.loads(html.unescape(re.search(r'data-config="([^"]*)"', response.content.decode())[1]))
