"""Alibaba Cloud: ECS instances, and the account behind them."""
