"""Memory of coding agents: facts written, recalled, offloaded, cared for."""
