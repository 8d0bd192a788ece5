"""``knowledge memory …``: the memory of coding agents, from their hooks and by hand."""
