"""OpenAI Responses: routes, wire records, translation, stored responses."""
