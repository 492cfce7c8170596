"""One-shot commands of the panel: done one at a time, beside sampling and reports, in a process of their own."""
