"""Signatures against the examples that the vendors publish, number for number."""

from datetime import UTC, datetime

import pytest

from fleet.providers.signing import acs3, tc3

# Alibaba Cloud, "Request syntax and signature method V3", section with fixed parameters (the key is a placeholder there).
ACS3_EXAMPLE = {
    "key_id": "YourAccessKeyId",
    "secret": "YourAccessKeySecret",
    "method": "POST",
    "host": "ecs.cn-shanghai.aliyuncs.com",
    "action": "RunInstances",
    "version": "2014-05-26",
    "at": datetime(2023, 10, 26, 10, 22, 32, tzinfo=UTC),
    "nonce": "3156853299f313e23d1673dc12e1703d",
    "params": {"RegionId": "cn-shanghai", "ImageId": "win2019_1809_x64_dtc_zh-cn_40G_alibase_20230811.vhd"},
}
ACS3_SIGNATURE = "06563a9e1b43f5dfe96b81484da74bceab24a1d853912eee15083a6f0f3283c0"

# Tencent Cloud, "API 3.0, signature method v3", the worked example (the key is the document's own, long void).
TC3_EXAMPLE = {
    "secret_id": "AKIDz8krbsJ5yKBZQpn74WFkmLPx3EXAMPLE",
    "secret_key": "Gu5t9xGARNpq86cd98joQYCN3EXAMPLE",
    "service": "cvm",
    "host": "cvm.tencentcloudapi.com",
    "action": "DescribeInstances",
    "version": "2017-03-12",
    "region": "ap-guangzhou",
    "at": datetime.fromtimestamp(1551113065, tz=UTC),
    "body": rb'{"Limit": 1, "Filters": [{"Values": ["\u672a\u547d\u540d"], "Name": "instance-name"}]}',
}
TC3_SIGNATURE = "72e494ea809ad7a8c8f7a4507b9bddcbaa8e581f516e8da2f66e2c5a96525168"


def test_acs3_gives_the_signature_of_the_published_example():
    assert acs3.signed_headers(**ACS3_EXAMPLE)["Authorization"] == (
        "ACS3-HMAC-SHA256 Credential=YourAccessKeyId,"
        "SignedHeaders=host;x-acs-action;x-acs-content-sha256;x-acs-date;x-acs-signature-nonce;x-acs-version,"
        f"Signature={ACS3_SIGNATURE}"
    )


@pytest.mark.parametrize(
    "change",
    [
        {"method": "GET"},
        {"host": "ecs.cn-hangzhou.aliyuncs.com"},
        {"action": "StopInstance"},
        {"nonce": "00"},
        {"params": {"RegionId": "cn-shanghai"}},
        {"body": b"{}"},
        {"content_type": "application/json"},
        {"path": "/api/v2/services"},
        {"secret": "another"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_acs3_signs_every_part_of_a_request(change):
    assert ACS3_SIGNATURE not in acs3.signed_headers(**{**ACS3_EXAMPLE, **change})["Authorization"]


def test_acs3_escapes_a_query_as_the_server_reads_it():
    assert acs3.canonical_query({"b": "a b*c~d/e+=", "A.1": "中"}) == "A.1=%E4%B8%AD&b=a%20b%2Ac~d%2Fe%2B%3D"


def test_tc3_gives_the_signature_of_the_published_example():
    headers = tc3.signed_headers(**TC3_EXAMPLE)
    assert headers["Authorization"] == (
        "TC3-HMAC-SHA256 Credential=AKIDz8krbsJ5yKBZQpn74WFkmLPx3EXAMPLE/2019-02-25/cvm/tc3_request, "
        f"SignedHeaders=content-type;host, Signature={TC3_SIGNATURE}"
    )
    assert headers["X-TC-Timestamp"] == "1551113065"
    assert headers["X-TC-Region"] == "ap-guangzhou"


@pytest.mark.parametrize(
    "change",
    [{"body": b"{}"}, {"service": "hai"}, {"host": "hai.tencentcloudapi.com"}, {"secret_key": "another"}],
    ids=lambda change: next(iter(change)),
)
def test_tc3_signs_every_part_of_a_request(change):
    assert TC3_SIGNATURE not in tc3.signed_headers(**{**TC3_EXAMPLE, **change})["Authorization"]


def test_tc3_names_no_region_for_a_call_that_has_none():
    assert "X-TC-Region" not in tc3.signed_headers(**{**TC3_EXAMPLE, "region": ""})
