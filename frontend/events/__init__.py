"""The Events page: what happened by itself (Event) and what somebody did (AuditEntry), as one stream by time."""
