"""What others wrote: listed with version, licence and hash, and unchanged."""

import hashlib
import json
from pathlib import Path

VENDOR = Path(__file__).resolve().parents[2] / "frontend" / "static" / "vendor"
LISTED = json.loads((VENDOR / "vendor.json").read_text())


def test_every_vendored_file_is_listed_and_unchanged():
    listed = {name: digest for package in LISTED for name, digest in package["files"].items()}
    present = {
        str(path.relative_to(VENDOR)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.rglob("*")
        if path.is_file() and path.name != "vendor.json"
    }
    assert present == listed


def test_every_package_says_what_it_is_and_brings_its_licence():
    for package in LISTED:
        assert package["name"]
        assert package["version"][0].isdigit()
        assert package["licence"]
        assert any(Path(name).name == "LICENSE" for name in package["files"])
