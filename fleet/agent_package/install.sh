#!/bin/sh
# Installer of the Fleetdeck agent, served by the panel with its own address and checksums filled in.
#
#   sh install.sh --token TOKEN [--mirror INDEX_URL] [--detached]    join this machine to the panel
#                 [--role gateway [--gateway-port 8080]]             as one that lets callers of endpoints in
#                 [--containers]                                     that may use Docker, which makes it as good as root
#   sh install.sh                                                    renew an installed agent
#   sh install.sh --uninstall                                        leave the panel and remove the agent
#   sh install.sh --print-unit                                       print the systemd unit and change nothing
#
# As root it installs to /opt/fleetdeck-agent and runs as a service of systemd; as an ordinary user it installs to
# ~/.local/share/fleetdeck-agent and runs as a service of the user. Where systemd does not run (containers) the agent runs
# detached, under a small loop that starts it again when it ends. FLEETDECK_AGENT_DIR chooses another folder,
# FLEETDECK_CA_FILE names the certificates to trust for a panel with a CA of its own.
set -eu
umask 022

PANEL_URL=@@PANEL_URL@@
VERSION=@@VERSION@@
WHEEL=@@WHEEL@@
WHEEL_SHA256=@@WHEEL_SHA256@@
REQUIREMENTS_SHA256=@@REQUIREMENTS_SHA256@@
GATEWAY_REQUIREMENTS_SHA256=@@GATEWAY_REQUIREMENTS_SHA256@@
MINIMUM_PYTHON_MINOR=@@MINIMUM_PYTHON_MINOR@@
FIRST_REPORT_SECONDS=${FLEETDECK_FIRST_REPORT_SECONDS:-90}

TOKEN=${FLEETDECK_JOIN_TOKEN:-}
MIRROR=${FLEETDECK_MIRROR:-}
CA_FILE=${FLEETDECK_CA_FILE:-}
ROLE=${FLEETDECK_ROLE:-}
CONTAINERS=${FLEETDECK_CONTAINERS:-}
GATEWAY_PORT=${FLEETDECK_GATEWAY_PORT:-8080}
ACTION=install
SERVICE=auto
NAME=fleetdeck-agent

say() { printf '%s\n' "$*"; }
step() { printf '[%s/6] %s\n' "$1" "$2"; }
fail() {
  printf '\n%s: %s\n' "$NAME" "$1" >&2
  shift
  for line in "$@"; do printf '  %s\n' "$line" >&2; done
  exit 1
}
usage() {
  sed -n '2,16s/^# \{0,1\}//p' "$0"
  exit "$1"
}

while [ $# -gt 0 ]; do
  case "$1" in
    --token) [ $# -ge 2 ] || usage 2; TOKEN=$2; shift ;;
    --token=*) TOKEN=${1#*=} ;;
    --mirror) [ $# -ge 2 ] || usage 2; MIRROR=$2; shift ;;
    --mirror=*) MIRROR=${1#*=} ;;
    --role) [ $# -ge 2 ] || usage 2; ROLE=$2; shift ;;
    --gateway-port) [ $# -ge 2 ] || usage 2; GATEWAY_PORT=$2; shift ;;
    --containers) CONTAINERS=yes ;;
    --detached) SERVICE=detached ;;
    --uninstall) ACTION=uninstall ;;
    --print-unit) ACTION=print-unit ;;
    -h | --help) usage 0 ;;
    *) printf '%s: unknown option %s\n' "$NAME" "$1" >&2; usage 2 ;;
  esac
  shift
done
case "$MIRROR" in
  '' | http://* | https://* | file://*) ;;
  *) fail "The mirror must be the address of a package index that begins with http:// or https://." ;;
esac

case "$ROLE" in
  '' | gateway) ;;
  *) fail "There is no role $ROLE. The one that there is: gateway." ;;
esac
case "$GATEWAY_PORT" in
  '' | *[!0-9]* | ??????*) fail "The gateway's port must be a number between 1 and 65535." ;;
esac

# --- where things go ------------------------------------------------------------------------------------------------
IS_ROOT=no
[ "$(id -u)" = 0 ] && IS_ROOT=yes
DATA_HOME=${XDG_DATA_HOME:-${HOME:-/nonexistent}/.local/share}
STATE_HOME=${XDG_STATE_HOME:-${HOME:-/nonexistent}/.local/state}
CONFIG_HOME=${XDG_CONFIG_HOME:-${HOME:-/nonexistent}/.config}
if [ -n "${FLEETDECK_AGENT_DIR:-}" ]; then
  APP=$FLEETDECK_AGENT_DIR STATE=$FLEETDECK_AGENT_DIR/state
  SERVICE=detached # a folder of one's own is one of several, and the service's name is one
elif [ "$IS_ROOT" = yes ]; then
  APP=/opt/$NAME STATE=/var/lib/$NAME
else
  APP=$DATA_HOME/$NAME STATE=$STATE_HOME/$NAME
fi
case "$APP" in
  /*) ;;
  *) fail "The folder $APP is not an absolute path." ;;
esac
case "$APP$STATE" in
  *[!A-Za-z0-9_./@%+=:,-]*) fail "The folder $APP has a space or a special character in its path." \
    "Choose another one: FLEETDECK_AGENT_DIR=/path sh install.sh …" ;;
esac
if [ "$IS_ROOT" = yes ]; then UNIT=/etc/systemd/system/$NAME.service; else UNIT=$CONFIG_HOME/systemd/user/$NAME.service; fi
# A gateway that is renewed stays one.
if [ -z "$CONTAINERS" ] && grep -Eqs '^SupplementaryGroups=.*(docker|podman)' "$UNIT"; then CONTAINERS=yes; fi # it was before
if [ -z "$ROLE" ] && [ -z "$TOKEN" ] && grep -q '"is_gateway": *true' "$STATE/identity.json" 2>/dev/null; then ROLE=gateway; fi
SYSCTL=/etc/sysctl.d/60-$NAME-gateway.conf
CONTROL=$APP/control.sh
LOG=$APP/agent.log

systemd() { if [ "$IS_ROOT" = yes ]; then systemctl "$@"; else systemctl --user "$@"; fi; }
has_systemd() {
  [ -d /run/systemd/system ] && command -v systemctl >/dev/null 2>&1 || return 1
  if [ "$IS_ROOT" = yes ]; then return 0; fi
  systemctl --user show-environment >/dev/null 2>&1
}
if [ "$SERVICE" = auto ]; then
  if has_systemd; then SERVICE=systemd; else SERVICE=detached; fi
fi

TMP=$(mktemp -d "${TMPDIR:-/tmp}/$NAME.XXXXXX")
trap 'rm -rf "$TMP"' EXIT
trap 'exit 130' INT TERM HUP

# --- small tools ----------------------------------------------------------------------------------------------------
explain_fetch() { # tool, exit code, address
  case "$1:$2" in
    curl:5) say "The name of the proxy cannot be resolved. Check http_proxy and https_proxy." ;;
    curl:6) say "The panel's name cannot be resolved. Check DNS on this machine, or use the panel's IP address." ;;
    curl:7) say "Nothing accepts connections there. Check that the panel runs and that no firewall is between." ;;
    curl:28) say "The panel did not answer in time. A firewall or a proxy may hold the connection." ;;
    curl:35 | curl:51 | curl:60 | curl:77 | wget:5)
      say "TLS failed: the panel's certificate is not trusted here, or this machine's clock is wrong ($(date))." ;;
    curl:22 | wget:8) say "The panel, or a proxy before it, answered with an error. The page may have moved, or the line is old." ;;
    wget:4) say "The panel cannot be reached: DNS, firewall or proxy." ;;
    *) say "Check DNS, proxy and firewall between this machine and the panel." ;;
  esac
}
fetch() { # address, file
  code=0
  if command -v curl >/dev/null 2>&1; then
    tool=curl
    curl -fsSL --connect-timeout 15 --max-time 300 ${CA_FILE:+--cacert "$CA_FILE"} -o "$2" "$1" || code=$?
  elif command -v wget >/dev/null 2>&1; then
    tool=wget
    wget -q -T 30 ${CA_FILE:+--ca-certificate="$CA_FILE"} -O "$2" "$1" || code=$?
  else
    tool=python
    "$PYTHON" -c 'import sys, urllib.request; urllib.request.urlretrieve(sys.argv[1], sys.argv[2])' "$1" "$2" || code=$?
  fi
  [ "$code" = 0 ] || fail "Could not fetch $1" "$(explain_fetch "$tool" "$code")"
}
check() { # file, sha256
  found=$("$PYTHON" -c 'import hashlib, sys; print(hashlib.sha256(open(sys.argv[1], "rb").read()).hexdigest())' "$1")
  [ "$found" = "$2" ] || fail "What came from the panel is not what this installer was made for ($(basename "$1"))." \
    "Copy a fresh line from the panel: it may have been upgraded in between. If it happens again, something rewrites downloads."
}
find_python() {
  for candidate in ${FLEETDECK_PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11 python3.10; do
    if command -v "$candidate" >/dev/null 2>&1 &&
      "$candidate" -c "import sys; sys.exit(sys.version_info < (3, $MINIMUM_PYTHON_MINOR))" 2>/dev/null; then
      PYTHON=$(command -v "$candidate")
      return 0
    fi
  done
  found=$(python3 -V 2>&1 || true)
  fail "The agent needs Python 3.$MINIMUM_PYTHON_MINOR or newer (found: ${found:-none})." \
    "Debian and Ubuntu: apt-get install -y python3 python3-venv" \
    "On an older system install a newer Python beside it and name it: FLEETDECK_PYTHON=/path/to/python3 sh install.sh …"
}

# --- the service ----------------------------------------------------------------------------------------------------
stop_agent() {
  if [ -f "$UNIT" ] && [ -z "${FLEETDECK_AGENT_DIR:-}" ] && has_systemd; then systemd stop "$NAME" >/dev/null 2>&1 || true; fi
  if [ -f "$CONTROL" ]; then sh "$CONTROL" stop >/dev/null 2>&1 || true; fi
}
write_control() {
  cat >"$CONTROL" <<CONTROL_END
#!/bin/sh
# Runs the Fleetdeck agent where there is no systemd: sh control.sh start | stop | status. The log is agent.log beside it.
APP='$APP' STATE='$STATE' LOG='$LOG'
CONTROL_END
  cat >>"$CONTROL" <<'CONTROL_END'
PID_FILE=$APP/agent.pid

is_running() {
  [ -f "$PID_FILE" ] && pid=$(cat "$PID_FILE") && [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null &&
    tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -q "$APP/control.sh loop"
}
case "${1:-}" in
  loop)
    echo $$ >"$PID_FILE"
    child=
    trap 'trap "" TERM INT; [ -z "$child" ] || { kill "$child" 2>/dev/null; wait "$child"; }; rm -f "$PID_FILE"; exit 0' TERM INT
    while :; do
      if [ -f "$LOG" ] && [ "$(wc -c <"$LOG")" -gt 10000000 ]; then mv -f "$LOG" "$LOG.1"; fi
      "$APP/venv/bin/python" -m fleet.agent run --state-dir "$STATE" >>"$LOG" 2>&1 &
      child=$!
      code=0
      wait "$child" || code=$?
      child=
      [ "$code" = 3 ] && { rm -f "$PID_FILE"; exit 0; } # it belongs to no panel any more
      sleep 5 &
      wait $!
    done
    ;;
  start)
    is_running && { echo "The agent runs already (pid $pid)."; exit 0; }
    if command -v setsid >/dev/null 2>&1; then
      setsid nohup sh "$APP/control.sh" loop </dev/null >/dev/null 2>&1 &
    else
      nohup sh "$APP/control.sh" loop </dev/null >/dev/null 2>&1 &
    fi
    ;;
  stop)
    is_running || exit 0
    kill "$pid"
    tries=0
    while kill -0 "$pid" 2>/dev/null && [ $tries -lt 150 ]; do
      sleep 0.2 2>/dev/null || sleep 1
      tries=$((tries + 1))
    done
    kill -9 "$pid" 2>/dev/null || true
    rm -f "$PID_FILE"
    ;;
  status) if is_running; then echo "running (pid $pid)"; else echo "not running"; exit 3; fi ;;
  *) echo "usage: sh $APP/control.sh start | stop | status" >&2; exit 2 ;;
esac
CONTROL_END
}
print_unit() {
  cat <<UNIT_END
[Unit]
Description=Fleetdeck agent
After=network-online.target
Wants=network-online.target
StartLimitIntervalSec=0

[Service]
ExecStart=$APP/venv/bin/python -m fleet.agent run --state-dir $STATE
Restart=always
RestartSec=5
RestartPreventExitStatus=3
TimeoutStopSec=30
# Engines and the gateway that it started run on while the agent is renewed or starts again.
KillMode=process
NoNewPrivileges=yes
UNIT_END
  # No limit of memory: it would hold for all that runs in the service, engines and Envoy too. The agent bounds itself.
  print_environment
  if [ "$IS_ROOT" = yes ]; then
    cat <<UNIT_END
# As root and before the sandbox: device files that nobody made since the boot are made by a program with setuid.
ExecStartPre=-+/bin/sh -c 'nvidia-modprobe; n=0; for g in /proc/driver/nvidia/gpus/*/; do nvidia-modprobe -c \$\$n; n=\$\$((n+1)); done'
User=$NAME
Group=$NAME
StateDirectory=$NAME
StateDirectoryMode=0700
UMask=0077
SupplementaryGroups=$(service_groups)
AmbientCapabilities=$(service_capabilities)
CapabilityBoundingSet=$(service_capabilities)
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
ProtectControlGroups=yes
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectHostname=yes
RestrictSUIDSGID=yes
RestrictRealtime=yes
RestrictNamespaces=yes
LockPersonality=yes
SystemCallArchitectures=native
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK

[Install]
WantedBy=multi-user.target
UNIT_END
  else
    printf '\n[Install]\nWantedBy=default.target\n'
  fi
}
print_environment() { # what this shell was told of proxies and of the driver's library, the service must know too
  for name in FLEETDECK_NVML_LIBRARY http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
    eval "value=\${$name:-}"
    [ -z "$value" ] || printf 'Environment="%s=%s"\n' "$name" "$(printf %s "$value" | tr -d '\n' | sed 's/[\\"]/\\&/g; s/%/%%/g')"
  done
}
service_capabilities() { # the kernel log; and ports below 1024 for a gateway
  printf CAP_SYSLOG
  if [ "$ROLE" = gateway ]; then printf ' CAP_NET_BIND_SERVICE'; fi
}
allow_watches() { # Envoy watches a file for each endpoint, and the usual 128 for each user are too few
  [ "$ROLE" = gateway ] && [ "$IS_ROOT" = yes ] || return 0
  [ "$(cat /proc/sys/fs/inotify/max_user_instances 2>/dev/null || echo 99999)" -lt 16384 ] || return 0
  if { printf 'fs.inotify.max_user_instances = 16384\n' >"$SYSCTL" && sysctl -q -p "$SYSCTL"; } 2>/dev/null; then return 0; fi
  say "      This machine does not let the installer raise fs.inotify.max_user_instances; the gateway works, and with many"
  say "      endpoints a change costs it more (docs/gateway.md)."
}
service_groups() { # groups that own the cards' device files and the kernel log, where this system has them
  for group in video render adm ${CONTAINERS:+docker podman}; do
    if getent group "$group" >/dev/null 2>&1; then printf '%s ' "$group"; fi
  done
}
own_state() { # the agent's commands work for the owner of its state alone
  if [ "$IS_ROOT" = yes ] && [ -d "$STATE" ]; then chown -R 0:0 "$STATE"; fi
}
make_account() {
  id "$NAME" >/dev/null 2>&1 && return 0
  useradd --system --user-group --home-dir "$STATE" --no-create-home --shell /usr/sbin/nologin "$NAME" ||
    fail "Could not make the system user $NAME." "Make it by hand, or run the agent without systemd: add --detached."
}
start_agent() {
  if [ "$SERVICE" = systemd ]; then
    mkdir -p "$(dirname "$UNIT")"
    print_unit >"$UNIT"
    chmod 600 "$UNIT" # a proxy may have a password
    if [ "$IS_ROOT" = yes ]; then chown -R "$NAME:$NAME" "$STATE"; fi
    systemd daemon-reload
    systemd enable --quiet "$NAME" 2>/dev/null || systemd enable "$NAME"
    systemd restart "$NAME"
    if [ "$IS_ROOT" = no ] && ! loginctl enable-linger "$(id -un)" >/dev/null 2>&1; then
      say "      The agent stops when you log out, because lingering is off. Ask root for: loginctl enable-linger $(id -un)"
    fi
  else
    sh "$CONTROL" start
    say "      No systemd here: it runs detached. After a restart of this container start it with: sh $CONTROL start"
  fi
}
show_log() {
  if [ "$SERVICE" = systemd ]; then
    if [ "$IS_ROOT" = yes ]; then journalctl -u "$NAME" -n 15 --no-pager 2>/dev/null; else
      journalctl --user -u "$NAME" -n 15 --no-pager 2>/dev/null
    fi
  else
    tail -n 15 "$LOG" 2>/dev/null
  fi | sed 's/^/  | /' >&2
}

# --- leaving --------------------------------------------------------------------------------------------------------
uninstall() {
  [ -d "$APP" ] || [ -d "$STATE" ] || fail "There is no agent in $APP."
  say "Removing the agent from $APP"
  stop_agent
  if [ -x "$APP/venv/bin/python" ]; then
    own_state
    "$APP/venv/bin/python" -m fleet.agent leave --force --state-dir "$STATE" | sed 's/^/  /' || true
  fi
  if [ -f "$UNIT" ] && [ -z "${FLEETDECK_AGENT_DIR:-}" ]; then
    if has_systemd; then systemd disable "$NAME" >/dev/null 2>&1 || true; fi
    rm -f "$UNIT"
    if has_systemd; then systemd daemon-reload || true; fi
  fi
  rm -rf "$APP" "$STATE"
  [ "$IS_ROOT" = no ] || rm -f "$SYSCTL"
  if [ "$IS_ROOT" = yes ] && [ -z "${FLEETDECK_AGENT_DIR:-}" ] && id "$NAME" >/dev/null 2>&1; then
    userdel "$NAME" >/dev/null 2>&1 || true
  fi
  say "Done: nothing of the agent is left on this machine."
}
case "$ACTION" in
  uninstall) uninstall; exit 0 ;;
  print-unit) print_unit; exit 0 ;;
esac

# --- joining --------------------------------------------------------------------------------------------------------
IS_JOINED=no
[ -f "$STATE/identity.json" ] && IS_JOINED=yes
if [ -z "$TOKEN" ] && [ "$IS_JOINED" = no ]; then
  fail "A join token is needed. Copy the whole line from the panel: $PANEL_URL/join/"
fi

say "Fleetdeck agent $VERSION → $APP"
find_python
step 1 "Python: $("$PYTHON" -V 2>&1) at $PYTHON"
"$PYTHON" -c 'import ensurepip, venv' 2>/dev/null ||
  fail "Python's venv module is missing." \
    "Debian and Ubuntu: apt-get install -y $("$PYTHON" -c 'import sys; print("python3.%d-venv" % sys.version_info[1])')"

step 2 "Fetching the agent from $PANEL_URL"
[ -z "$CA_FILE" ] || export SSL_CERT_FILE="$CA_FILE"
if [ -n "$TOKEN" ]; then
  FLEETDECK_JOIN_TOKEN=$TOKEN "$PYTHON" - "$PANEL_URL" >"$TMP/token.log" <<'TOKEN_END' || fail "$(cat "$TMP/token.log")"
# A line that is old or was used is said to be so before anything is installed; trouble with the way there is for the fetch.
import json
import os
import sys
import urllib.error
import urllib.request

request = urllib.request.Request(sys.argv[1] + "/api/agent/v1/join/status/")
request.add_header("Authorization", "Bearer " + os.environ["FLEETDECK_JOIN_TOKEN"])
problem = ""
try:
    with urllib.request.urlopen(request, timeout=20) as answer:
        if json.load(answer)["token_used_at"] is not None:
            problem = "This join token was used already. Make a new one in the panel."
except urllib.error.HTTPError as error:
    if error.code == 401:
        problem = json.load(error)["message"]
except (OSError, ValueError, KeyError):
    pass
print(problem)
sys.exit(1 if problem else 0)
TOKEN_END
fi
fetch "$PANEL_URL/agent/$WHEEL" "$TMP/$WHEEL"
REQUIREMENTS=requirements.txt
if [ "$ROLE" = gateway ]; then REQUIREMENTS=requirements-gateway.txt REQUIREMENTS_SHA256=$GATEWAY_REQUIREMENTS_SHA256; fi
fetch "$PANEL_URL/agent/$REQUIREMENTS" "$TMP/requirements.txt"
check "$TMP/$WHEEL" "$WHEEL_SHA256"
check "$TMP/requirements.txt" "$REQUIREMENTS_SHA256"

step 3 "Installing its packages${MIRROR:+ from $MIRROR}"
mkdir -p "$APP" "$STATE" || fail "The folder $APP cannot be written."
chmod 700 "$STATE"
NEW=$APP/venv-$(date +%Y%m%d%H%M%S)-$$
trap 'rm -rf "$TMP" "$NEW"' EXIT
"$PYTHON" -m venv "$NEW" >"$TMP/venv.log" 2>&1 || fail "Python could not make a virtual environment in $NEW." "$(tail -n 3 "$TMP/venv.log")"
pip() { "$NEW/bin/python" -m pip --quiet --disable-pip-version-check --no-input "$@" >"$TMP/pip.log" 2>&1; }
set -- --require-hashes --only-binary :all: -r "$TMP/requirements.txt"
if [ -n "$MIRROR" ]; then set -- --index-url "$MIRROR" "$@"; fi
pip install "$@" ||
  fail "The agent's packages could not be installed:" "$(grep -v '^$' "$TMP/pip.log" | tail -n 4)" \
    "If this machine does not reach the package index, choose a mirror on the panel's join page, or add: --mirror INDEX_URL" \
    "Behind a proxy, set https_proxy first."
pip install --no-deps --no-index "$TMP/$WHEEL" || fail "The agent's wheel could not be installed:" "$(tail -n 4 "$TMP/pip.log")"

resume() { # after a failed join: what ran before runs on
  if [ "$IS_JOINED" = yes ] && [ -f "$CONTROL" ]; then start_agent; else rm -rf "$NEW"; rmdir "$STATE" "$APP" 2>/dev/null || true; fi
}
stop_agent
if [ -n "$TOKEN" ]; then
  step 4 "Joining"
  own_state
  set -- --panel "$PANEL_URL" --token - --state-dir "$STATE"
  [ "$IS_JOINED" = no ] || set -- "$@" --replace
  [ -z "$CA_FILE" ] || set -- "$@" --ca-file "$CA_FILE"
  [ -z "$ROLE" ] || set -- "$@" --role "$ROLE" --gateway-port "$GATEWAY_PORT"
  printf '%s\n' "$TOKEN" | "$NEW/bin/python" -m fleet.agent join --log-level warning "$@" >"$TMP/join.log" || {
    cat "$TMP/join.log" >&2
    resume
    fail "This machine did not join (see the line above). Nothing was changed; run a fresh line from the panel to try again."
  }
else
  step 4 "Joined before; only the agent is renewed"
fi
OLD=$(readlink "$APP/venv" 2>/dev/null || true)
rm -f "$APP/venv"
ln -s "$NEW" "$APP/venv"
trap 'rm -rf "$TMP"' EXIT
case "$OLD" in "$APP"/venv-*) rm -rf "$OLD" ;; esac
write_control
if [ -f "$0" ]; then cp "$0" "$APP/install.new" && mv -f "$APP/install.new" "$APP/install.sh"; fi # to leave without the panel

step 5 "Starting"
allow_watches
if [ "$SERVICE" = systemd ] && [ "$IS_ROOT" = yes ]; then make_account; fi
start_agent

if [ -z "$TOKEN" ]; then
  say "Done: the agent is renewed."
  exit 0
fi
step 6 "Waiting for the first report"
FLEETDECK_JOIN_TOKEN=$TOKEN "$APP/venv/bin/python" - "$PANEL_URL" "$FIRST_REPORT_SECONDS" "$APP" <<'WAIT_END' || { show_log; exit 1; }
import json
import os
import sys
import time
import urllib.error
import urllib.request

panel, patience = sys.argv[1], float(sys.argv[2])
request = urllib.request.Request(panel + "/api/agent/v1/join/status/")
request.add_header("Authorization", "Bearer " + os.environ["FLEETDECK_JOIN_TOKEN"])
deadline = time.monotonic() + patience
said, trouble, facts = set(), "", {}


def tell(key, text):
    if key not in said:
        said.add(key)
        print("      " + text, flush=True)


while True:
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            facts, trouble = json.load(answer), ""
    except (OSError, ValueError) as error:
        trouble = "The panel did not answer: %s" % getattr(error, "reason", error)
    if facts.get("facts_at"):
        tell("facts", "host facts arrived")
    skew = facts.get("clock_skew_seconds")
    if skew is not None and abs(skew) > 30:
        way = "ahead of" if skew > 0 else "behind"
        tell("skew", "This machine's clock is %.0f s %s the panel's. Samples are kept at the panel's time; set up NTP." % (abs(skew), way))
    is_late = time.monotonic() > deadline
    is_whole = facts.get("facts_at") and facts.get("driver_state") not in (None, "unknown")
    if facts.get("has_reported") and (is_whole or is_late):
        break
    if is_late:
        print("\nfleetdeck-agent: The agent runs and no report of it has reached the panel within %.0f s." % patience, file=sys.stderr)
        print("  " + (trouble or "Look at its log; a proxy may stop large or compressed requests."), file=sys.stderr)
        sys.exit(1)
    time.sleep(1)
tell("report", "first report accepted")
tell("gpus", "GPUs found: %s" % facts["gpu_count"])
if facts.get("driver_state") != "ok":
    tell("driver", facts["driver_sentence"])
    if facts.get("next_step"):
        tell("step", facts["next_step"])
print("To leave again: sh %s/install.sh --uninstall" % sys.argv[3])
print("Done: this machine reports as “%s”: %s" % (facts["server_name"], panel + "/servers/%d/" % facts["server_id"]))
WAIT_END
