"""Agents' door to the knowledge service: one table of MCP tools, over HTTP and standard input.

Every tool stands for one operation of the HTTP API and asks it with the caller's own credential.
Nothing is answered from anywhere else, so scope, validation and errors are those of the API.
"""
