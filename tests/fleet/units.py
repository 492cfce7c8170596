"""The unit that the installer prints for root, whoever runs the tests."""


def root_is_asked(folder):
    """Make a program `id` in the folder that takes everybody for root; the folder belongs in front of PATH."""
    program = folder / "id"
    program.write_text("#!/bin/sh\necho 0\n")
    program.chmod(0o755)
