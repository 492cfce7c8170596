"""The installer of the development environment tells uv what people have told pip."""

import importlib.util

import pytest

from tests.databases import ROOT


@pytest.fixture(scope="module")
def install():
    spec = importlib.util.spec_from_file_location("install", ROOT / "scripts" / "install.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_environment_stands_above_pips_files(install):
    listed = (
        ":env:.index-url='https://near.example/simple'\n"
        "global.index-url='https://far.example/simple'\n"
        "global.extra-index-url='https://one.example https://two.example'\n"
        "install.trusted-host='near.example'\n"
        "list.format='columns'\n"
    )
    settings = install.pip_settings(listed)
    assert settings == {
        "index-url": "https://near.example/simple",
        "extra-index-url": "https://one.example https://two.example",
        "trusted-host": "near.example",
    }


def test_uv_is_told_where_pip_would_look(install):
    told = install.uv_environment(
        {
            "index-url": "https://a.example",
            "find-links": "\n/wheels\n/more",
            "extra-index-url": "\nx\ny",
            "timeout": "9",
        }
    )
    assert told == {"UV_DEFAULT_INDEX": "https://a.example", "UV_FIND_LINKS": "/wheels,/more", "UV_INDEX": "x y"}
    assert install.uv_environment({}) == {}


def test_a_lock_without_uv_is_left_to_pip(install, tmp_path):
    lock = tmp_path / "lock.txt"
    lock.write_text("idna==3.10 \\\n    --hash=sha256:00\n")
    assert install.install_with_uv(lock) is False
    assert "uv==" in (ROOT / "requirements" / "dev.txt").read_text()
