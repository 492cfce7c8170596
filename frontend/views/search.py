"""The search over everything: a page, and the list inside the palette."""

from django.http import HttpResponse
from django.shortcuts import render

from frontend.access import PageRequest, page, role_of
from frontend.search import search as find
from panel.accounts.capabilities import Capability


@page(Capability.PROFILE_EDIT)
def search(request: PageRequest) -> HttpResponse:
    """Answer ?q=; the palette (htmx) gets the list alone."""
    text = request.GET.get("q", "")
    template = "search/results.html" if request.headers.get("HX-Request") else "search/page.html"
    context = {"hits": find(text=text, role=role_of(request)), "text": text}
    return render(request, template, context)
