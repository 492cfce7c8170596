"""RunPod, REST API v2."""
