"""Nodes and links of scenario files, for the tools beside this file that write them."""


def node(name):
    """A node."""
    return f'[[node]]\nname = "{name}"\n'


def link(a, b, rate, delay, name="", more=""):
    """A link between two nodes; `more` is what else the file is to say of it."""
    named = f'name = "{name}"\n' if name else ""
    return f'[[link]]\n{named}from = "{a}"\nto = "{b}"\nrate = "{rate}"\ndelay = "{delay}"\n{more}'
