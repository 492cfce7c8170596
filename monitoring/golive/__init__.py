"""The test before an endpoint goes live: how many requests, when they arrive, and what their times prove. Pure."""
