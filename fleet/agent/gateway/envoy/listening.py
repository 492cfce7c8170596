"""Where callers arrive (LDS): the listener, its filters, its access log, and TLS from files."""

from pathlib import Path
from typing import Final

from fleet.agent.gateway.envoy.layout import ACCESS_LOG, EDS_FOLDER, KEYS_FOLDER, SDS, Config, typed, watched
from fleet.agent.gateway.envoy.refusals import local_replies
from fleet.agent.gateway.envoy.routing import LARGEST_BODY, LUA, NAME
from fleet.agent.orders import GatewayOrder

RDS_PATH: Final = "rds/rds.json"
CERTIFICATE: Final = "certificate"
SCRIPT: Final = Path(__file__).with_name("filter.lua")
# A key's bucket holds this much and is filled in a minute; a request of a key with n a minute costs an n-th (see filter.lua).
COST_OF_A_MINUTE: Final = 600_000_000
KEYS_AT_ONCE: Final = 20_000
REQUEST_SECONDS: Final = "300s"

# Names of the log's fields are short: there is a line for each request. Durations in microseconds.
LOG_FIELDS: Final = {
    "e": f"%METADATA(ROUTE:{LUA}:endpoint)%",
    "t": "%START_TIME(%s%3f)%",
    "c": "%RESPONSE_CODE%",
    "f": "%RESPONSE_FLAGS%",
    "q": "%COMMON_DURATION(DS_RX_END:US_TX_BEG:us)%",
    "b": "%COMMON_DURATION(DS_RX_BEG:US_RX_BODY_BEG:us)%",
    "b2": "%COMMON_DURATION(DS_RX_BEG:DS_TX_BEG:us)%",
    "d": "%DURATION%",
    "i": "%BYTES_RECEIVED%",
    "o": "%BYTES_SENT%",
    "a": "%UPSTREAM_REQUEST_ATTEMPT_COUNT%",
    "k": "%DYNAMIC_METADATA(fleetdeck:key)%",
    "n": "%DYNAMIC_METADATA(fleetdeck:tokens)%",
    "v": "%DYNAMIC_METADATA(fleetdeck:events)%",
    "r": "%DYNAMIC_METADATA(fleetdeck:refusal)%",
    "p": "%DYNAMIC_METADATA(fleetdeck:probe)%",
}


def listener(order: GatewayOrder) -> Config:
    """Return the LDS resource."""
    chain: Config = {
        "filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": _connection_manager()}]
    }
    if order.certificate_file:
        chain["transport_socket"] = _tls()
    return typed(
        "envoy.config.listener.v3.Listener",
        name="callers",
        address={"socket_address": {"address": order.host, "port_value": order.port}},
        filter_chains=[chain],
        per_connection_buffer_limit_bytes=1024 * 1024,
    )


def certificate(chain: str, key: str) -> Config:
    """Return the SDS resource of a certificate. chain, key: in PEM."""
    return typed(
        "envoy.extensions.transport_sockets.tls.v3.Secret",
        name=CERTIFICATE,
        tls_certificate={"certificate_chain": {"inline_string": chain}, "private_key": {"inline_string": key}},
    )


def _tls() -> Config:
    context = typed(
        "envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
        common_tls_context={
            "alpn_protocols": ["h2", "http/1.1"],
            "tls_params": {"tls_minimum_protocol_version": "TLSv1_2"},
            "tls_certificate_sds_secret_configs": [{"name": CERTIFICATE, "sds_config": watched(SDS)}],
        },
    )
    return {"name": "envoy.transport_sockets.tls", "typed_config": context}


def _connection_manager() -> Config:
    return typed(
        "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        stat_prefix="callers",
        codec_type="AUTO",
        rds={"route_config_name": NAME, "config_source": watched(RDS_PATH)},
        server_name="fleetdeck",
        # Nobody is inside: a caller's x-envoy-* headers would change retries and time limits.
        use_remote_address=True,
        internal_address_config={"cidr_ranges": [{"address_prefix": "255.255.255.255", "prefix_len": 32}]},
        skip_xff_append=True,
        normalize_path=True,
        merge_slashes=True,
        path_with_escaped_slashes_action="REJECT_REQUEST",
        strip_any_host_port=True,
        generate_request_id=True,
        always_set_request_id_in_response=True,
        # Silence is bounded for each try (per_try_timeout, per_try_idle_timeout): here it would cut slow streams.
        stream_idle_timeout="0s",
        request_timeout=REQUEST_SECONDS,
        request_headers_timeout="10s",
        common_http_protocol_options={"idle_timeout": "300s", "headers_with_underscores_action": "ALLOW"},
        http2_protocol_options={
            "max_concurrent_streams": 256,
            "initial_stream_window_size": 1048576,
            "initial_connection_window_size": 4194304,
        },
        delayed_close_timeout="0.1s",
        upgrade_configs=[{"upgrade_type": "websocket", "filters": [_lua(), _requests_per_minute(), _router()]}],
        local_reply_config=local_replies(),
        access_log=[_access_log()],
        http_filters=[_lua(), _requests_per_minute(), _whole_request(), _router()],
    )


def _lua() -> Config:
    script = (
        SCRIPT.read_text()
        .replace("@@KEYS@@", KEYS_FOLDER)
        .replace("@@ENDPOINTS@@", EDS_FOLDER)
        .replace("@@LARGEST_BODY@@", str(LARGEST_BODY))
    )
    return {
        "name": LUA,
        "typed_config": typed(
            "envoy.extensions.filters.http.lua.v3.Lua", default_source_code={"inline_string": script}
        ),
    }


def _requests_per_minute() -> Config:
    """One bucket for each key, shared by Envoy's workers; a key without a limit has no `rated` and passes by."""
    rated = {
        "metadata": {
            "descriptor_key": "key",
            "metadata_key": {"key": "fleetdeck", "path": [{"key": "rated"}]},
            "source": "DYNAMIC",
        }
    }
    bucket = {"max_tokens": COST_OF_A_MINUTE, "tokens_per_fill": COST_OF_A_MINUTE, "fill_interval": "60s"}
    always = {"default_value": {"numerator": 100, "denominator": "HUNDRED"}}
    return {
        "name": "envoy.filters.http.local_ratelimit",
        "typed_config": typed(
            "envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit",
            stat_prefix="keys",
            token_bucket=bucket,
            always_consume_default_token_bucket=False,
            filter_enabled=always,
            filter_enforced=always,
            max_dynamic_descriptors=KEYS_AT_ONCE,
            descriptors=[{"entries": [{"key": "key"}], "token_bucket": bucket}],
            rate_limits=[
                {"actions": [rated], "hits_addend": {"format": "%DYNAMIC_METADATA(fleetdeck:cost)%"}},
            ],
        ),
    }


def _whole_request() -> Config:
    """Take in a request before a replica is taken: one that uploads slowly holds no slot, and can be sent again."""
    return {
        "name": "envoy.filters.http.buffer",
        "typed_config": typed("envoy.extensions.filters.http.buffer.v3.Buffer", max_request_bytes=LARGEST_BODY),
    }


def _router() -> Config:
    return {
        "name": "envoy.filters.http.router",
        "typed_config": typed("envoy.extensions.filters.http.router.v3.Router", suppress_envoy_headers=True),
    }


def _access_log() -> Config:
    return {
        "name": "envoy.access_loggers.file",
        "typed_config": typed(
            "envoy.extensions.access_loggers.file.v3.FileAccessLog",
            path=ACCESS_LOG,
            log_format={"json_format": LOG_FIELDS},
        ),
    }
