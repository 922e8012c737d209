"""OpenAI Chat Completions: routes, wire records, translation."""
