"""The pages: views, forms, templates and static files."""
