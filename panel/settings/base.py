"""Settings that every process shares."""

import logging
import sys
from pathlib import Path
from typing import Any

from csp.constants import NONE, SELF

from panel.settings.api import *  # noqa: F403  # the same names, kept beside their subject
from panel.settings.environment import BASE_DIR, DATA_DIR, PROJECT_VERSION, env, secret_key, service_url
from panel.settings.logs import configure_structlog, logging_config
from panel.settings.storage import *  # noqa: F403  # the same names, kept beside their subject

VERSION = PROJECT_VERSION
DEBUG = env.bool("FLEETDECK_DEBUG", default=False)
SECRET_KEY = secret_key()
ENCRYPTION_KEYS = env.str("FLEETDECK_ENCRYPTION_KEYS", default="")
ENCRYPTION_KEY_FILE = DATA_DIR / "encryption-keys"  # used, and made, when the environment holds none
HOST = env.str("FLEETDECK_HOST", default="127.0.0.1")
PORT = env.int("FLEETDECK_PORT", default=8000)
PUBLIC_URL = env.str("FLEETDECK_PUBLIC_URL", default=f"http://{HOST if HOST != '0.0.0.0' else '127.0.0.1'}:{PORT}")  # noqa: S104
IS_PUBLIC_URL_GIVEN = bool(env.str("FLEETDECK_PUBLIC_URL", default=""))
AGENT_PACKAGE_DIR = DATA_DIR / "agent-package"  # wheels of the agent, built at first need
EGRESS_ALLOW = env.list("FLEETDECK_EGRESS_ALLOW", default=[])  # private networks that the panel may connect to
GOLIVE_TIME_SCALE = env.float("FLEETDECK_GOLIVE_TIME_SCALE", default=1.0)  # under 1: go-live tests are trials
PACKAGE_MIRRORS = env.dict("FLEETDECK_PACKAGE_MIRRORS", default={})  # name=index address of a mirror, comma between
ALLOWED_HOSTS = env.list("FLEETDECK_ALLOWED_HOSTS", default=["127.0.0.1", "localhost", "[::1]", HOST])
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL, *env.list("FLEETDECK_TRUSTED_ORIGINS", default=[])]
IS_HTTPS = PUBLIC_URL.startswith("https://")

DATABASE_URL = service_url("DATABASE_URL", "postgresql://postgres@127.0.0.1:5432/fleetdeck")
REDIS_URL = service_url("REDIS_URL", "redis://127.0.0.1:6379/0")
BROKER_URL = service_url("BROKER_URL", REDIS_URL)

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "django.contrib.humanize",
    "template_partials",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "drf_standardized_errors",
    "django_structlog",
    "channels",
    "panel",
    "panel.core",
    "panel.accounts",
    "fleet",
    "monitoring",
    "endpoints",
    "frontend",
]

MIDDLEWARE = [
    "panel.core.middleware.RequestIdMiddleware",
    "panel.health.middleware.health_middleware",
    "panel.health.requests.counting_middleware",
    "django.middleware.security.SecurityMiddleware",
    "panel.core.static.StaticFilesMiddleware",
    "django.middleware.gzip.GZipMiddleware",  # below the static files, which are compressed already
    "panel.core.middleware.NoStoreMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django_structlog.middlewares.RequestMiddleware",
    "panel.accounts.middleware.SessionActivityMiddleware",
    "panel.accounts.middleware.LogInMiddleware",  # strangers see only views marked login_not_required
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "frontend.middleware.PreferencesMiddleware",
]

ROOT_URLCONF = "panel.urls"
ASGI_APPLICATION = "panel.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "frontend" / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "frontend.context.shell",
            ],
        },
    },
]

_database: dict[str, Any] = env.db_url_config(DATABASE_URL)
# Web (the process that loads panel.asgi) answers each request in a thread of its own, which would keep a connection of its
# own: there all of them share a pool.
_pool_size = env.int("FLEETDECK_DATABASE_POOL", default=10)
_pool_wait = env.int("FLEETDECK_DATABASE_POOL_WAIT", default=20)
_pool: dict[str, Any] = (
    {"pool": {"min_size": 1, "max_size": _pool_size, "timeout": _pool_wait}}
    if _pool_size and "panel.asgi" in sys.modules
    else {}
)
DATABASES: dict[str, Any] = {
    "default": {
        **_database,
        "OPTIONS": {"connect_timeout": 5, **_pool, **_database.get("OPTIONS", {})},
        "CONN_MAX_AGE": 0 if _pool else None,
        "CONN_HEALTH_CHECKS": True,
        "ATOMIC_REQUESTS": False,
    },
}
CACHES = {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": REDIS_URL}}
CHANNEL_LAYERS: dict[str, Any] = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [{"address": REDIS_URL, "socket_timeout": None}], "prefix": "fleetdeck"},
    },
}

CELERY_BROKER_URL = BROKER_URL
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None  # for ever
CELERY_BROKER_TRANSPORT_OPTIONS = (
    {} if BROKER_URL.startswith("amqp") else {"visibility_timeout": 900, "global_keyprefix": "fleetdeck:celery:"}
)
CELERY_TASK_DEFAULT_QUEUE = "fleetdeck"
CELERY_TASK_SERIALIZER = CELERY_RESULT_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_SOFT_TIME_LIMIT = 240
CELERY_TASK_TIME_LIMIT = 300  # below the visibility timeout, so that no task is handed out twice while it runs
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_CONCURRENCY = env.int("FLEETDECK_WORKER_CONCURRENCY", default=3)
CELERY_WORKER_MAX_TASKS_PER_CHILD = 1000
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = True
CELERY_BEAT_SCHEDULER = "panel.celery.Scheduler"
CELERY_BEAT_SCHEDULE_FILENAME = str(DATA_DIR / "celerybeat-schedule")
CELERY_TIMEZONE = "UTC"

DEADMAN_URL = env.str("FLEETDECK_DEADMAN_URL", default="")

configure_structlog()
LOGGING_CONFIG = "logging.config.dictConfig"
LOGGING = logging_config(
    level=env.str("FLEETDECK_LOG_LEVEL", default="INFO").upper(),
    as_json=env.str("FLEETDECK_LOG_FORMAT", default="text") == "json",
)
DJANGO_STRUCTLOG_TRUST_UPSTREAM_REQUEST_ID = True  # RequestIdMiddleware has checked or replaced it
DJANGO_STRUCTLOG_IP_LOGGING_ENABLED = False  # it would believe any X-Forwarded-For; RequestIdMiddleware binds `address`
DJANGO_STRUCTLOG_STATUS_START_LOG_LEVEL = DJANGO_STRUCTLOG_STATUS_2XX_LOG_LEVEL = logging.DEBUG

AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["django.contrib.auth.backends.ModelBackend"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "/login/"
LOGIN_REDIRECT_URL = "/"

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
LOCALE_PATHS = [BASE_DIR / "frontend" / "locale"]
TIME_ZONE = "UTC"
DISPLAY_TIME_ZONE = env.str("FLEETDECK_TIME_ZONE", default="")
USE_I18N = True
USE_TZ = True

STATIC_URL = "/static/"
STATIC_ROOT = Path(env.str("FLEETDECK_STATIC_ROOT", default=str(DATA_DIR / "static")))
STATICFILES_DIRS = [BASE_DIR / "frontend" / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "frontend.storage.StaticFiles"},
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = IS_HTTPS
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_HTTPONLY = True
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_HSTS_SECONDS = 31_536_000 if IS_HTTPS else 0
BEHIND_PROXY = env.bool("FLEETDECK_BEHIND_PROXY", default=False)
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if BEHIND_PROXY else None
CSRF_FAILURE_VIEW = "frontend.views.errors.csrf_failure"
MESSAGE_TAGS = {10: "info", 20: "info", 25: "ok", 30: "warning", 40: "critical"}  # the tones of frontend.status
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "connect-src": [SELF],
        "img-src": [SELF, "data:"],
        "frame-ancestors": [NONE],
        "base-uri": [SELF],
        "form-action": [SELF],
        "object-src": [NONE],
    },
}
