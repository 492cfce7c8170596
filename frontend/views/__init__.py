"""Views of the pages: each reads through selectors, writes through one service, and renders."""
