"""Pages of lists: by cursor, so that page 1,000 costs what page 1 costs and new rows shift nothing."""

from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.db import DataError
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from rest_framework.exceptions import NotFound
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request
from rest_framework.response import Response

if TYPE_CHECKING:  # the framework's views import this module for their defaults
    from collections.abc import Sequence

    from rest_framework.views import APIView

DEFAULT_LIMIT = 100
MAX_LIMIT = 500


class Pages(CursorPagination):
    """`{next, previous, results}`, `?limit=` up to 500. Newest first, unless the view's `ordering` says otherwise."""

    ordering = "-id"
    page_size = DEFAULT_LIMIT
    max_page_size = MAX_LIMIT
    page_size_query_param = "limit"
    cursor_query_param = "cursor"

    def get_ordering(
        self,
        request: Request,  # noqa: ARG002 (the framework's signature)
        queryset: QuerySet[Any],  # noqa: ARG002 (the same)
        view: "APIView | None",
    ) -> tuple[str, ...]:
        """Return the view's `ordering` (ending in a unique column), else newest first."""
        ordering = getattr(view, "ordering", None) or self.ordering
        return (ordering,) if isinstance(ordering, str) else tuple(ordering)

    def paginate_queryset(
        self, queryset: "QuerySet[Any] | Sequence[Any]", request: Request, view: "APIView | None" = None
    ) -> list[Any] | None:
        """Return one page. Raises NotFound for a cursor that this list never gave out."""
        try:
            return super().paginate_queryset(queryset, request, view)
        except (ValueError, TypeError, ValidationError, DataError) as error:
            raise NotFound(_("This cursor does not belong to this list; start again without it.")) from error

    def get_paginated_response(self, data: Any) -> Response:
        """Return the three keys in their fixed order."""
        return Response({"next": self.get_next_link(), "previous": self.get_previous_link(), "results": data})
