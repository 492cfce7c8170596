"""The fake servers of all vendors whose adapters speak HTTP."""

from tests.fakes.aliyun import FakeAliyun
from tests.fakes.autodl import FakeAutoDl
from tests.fakes.compshare import FakeCompshare
from tests.fakes.lambda_cloud import FakeLambda
from tests.fakes.runpod import FakeRunPod
from tests.fakes.tencent import FakeTencent
from tests.fakes.vast import FakeVast
from tests.fakes.verda import FakeVerda

VENDORS = (
    FakeRunPod,
    FakeLambda,
    FakeVast,
    FakeVerda,
    FakeAliyun,
    FakeTencent,
    FakeAutoDl,
    FakeCompshare,
)
