"""``knowledge mcp``: agents served over standard input, and their programs set up."""
