"""Why a case or a whole test ends."""


class Failed(Exception):
    """A case could not go on."""


class Unavailable(Exception):
    """The machine lacks something that the tests need."""
