"""One module per table; its docstring is the protocol."""
