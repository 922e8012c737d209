"""The HTTP gateway: OpenAI and Anthropic protocols in front of one engine.

Owns wire formats, protocol errors, the server's life. Does not know grammars, tokens or models.
"""
