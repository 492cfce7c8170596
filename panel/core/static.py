"""Static files, served by WhiteNoise in front of everything else."""

from contextlib import closing
from typing import Any

from django.http import HttpRequest, HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware  # type: ignore[import-untyped]


class StaticFilesMiddleware(WhiteNoiseMiddleware):  # type: ignore[misc]  # WhiteNoise has no types
    """Answers with the file's bytes in one piece.

    WhiteNoise hands on an open file to be read piece by piece, which Django cannot do on the event loop: it reads all of it
    in a thread first and warns each time. The files are small; what every page loads is compressed and below 100 kB.
    """

    @staticmethod
    def serve(static_file: Any, request: HttpRequest) -> HttpResponse:
        """Return the file, a part of it, or the word that the browser has it already."""
        answer = static_file.get_response(request.method, request.META)
        content = b""
        if answer.file is not None:
            with closing(answer.file) as file:
                content = file.read()
        response = HttpResponse(content, status=int(answer.status))
        del response["Content-Type"]
        for name, value in answer.headers:
            response[name] = value
        return response
