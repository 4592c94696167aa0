"""Why a case or a whole test ends."""


class Failed(Exception):
    """A case could not go on."""


class Unavailable(Exception):
    """The machine lacks something that the tests need."""


def expect(is_right, what):
    """Ends a case unless something is as it must be."""
    if not is_right:
        raise Failed(what)
