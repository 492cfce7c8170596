"""The live side of the pages: one WebSocket per page, one hub per process.

A consumer (one socket) subscribes to topics at its process's hub; the hub holds one channel-layer subscription per
topic, merges what arrives, encodes each frame once and hands it to the sockets; each socket has a mailbox that merges
further while the browser is slow. See docs/architecture.md for frames and topics.
"""
