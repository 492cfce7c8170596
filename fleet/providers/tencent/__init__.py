"""Tencent Cloud: CVM instances, and the account behind them."""
