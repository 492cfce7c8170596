"""Many callers at once, and what became of their requests."""

import threading
import time
from collections import Counter

import httpx

from tests.agent.gateway.place import KEY, words


class Load:
    """Callers that ask again and again until told to stop. outcomes: how often each thing happened.

    `ok`; `cut`: the stream broke off after it began; anything else is a request that failed before it was answered.
    """

    def __init__(self, place, path, request, callers):
        self.url = f"{place.url}{path}"
        self.request = request
        self.outcomes = Counter()
        self.ends = []  # (monotonic seconds at the end, seconds it took, outcome)
        self.begun = 0
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=self._call, daemon=True) for _ in range(callers)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exception):
        self._is_over.set()
        for thread in self._threads:
            thread.join(60)

    def _call(self):
        with httpx.Client(timeout=60, verify=False) as client:
            while not self._is_over.is_set():
                with self._lock:
                    self.begun += 1
                began = time.monotonic()
                outcome = self._outcome(client)
                with self._lock:
                    self.outcomes[outcome] += 1
                    self.ends.append((time.monotonic(), time.monotonic() - began, outcome))

    def _outcome(self, client):
        is_begun, text = False, ""
        try:
            with client.stream(
                "POST", self.url, json=self.request, headers={"authorization": f"Bearer {KEY}"}
            ) as answer:
                if answer.status_code != 200:
                    return str(answer.status_code)
                is_begun = True
                for part in answer.iter_text():
                    text += part
        except httpx.HTTPError as error:
            return "cut" if is_begun else type(error).__name__
        if self.request.get("stream") and words(text) != (self.request["n"], True):
            return "cut"
        return "ok"

    @property
    def failed(self):
        """Requests that failed before they were answered."""
        return {name: count for name, count in self.outcomes.items() if name not in {"ok", "cut"}}
