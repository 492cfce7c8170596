"""Settings of the test run: the same code, quicker passwords, addresses from tests/conftest.py."""

from panel.settings.base import *  # noqa: F403

SECRET_KEY = "only-for-tests-0123456789-0123456789-0123456789"  # noqa: S105
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
ALLOWED_HOSTS = ["*"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
WHITENOISE_AUTOREFRESH = WHITENOISE_USE_FINDERS = True  # nothing is collected before tests
# pub/sub knows no numbered databases: workers of one run tell each other nothing
CHANNEL_LAYERS["default"]["CONFIG"]["prefix"] = f"fleetdeck{REDIS_URL.rpartition('/')[2]}"  # noqa: F405
