"""The page at ``/`` for trying prompts and constraints by hand, and ``/openapi.json``."""
