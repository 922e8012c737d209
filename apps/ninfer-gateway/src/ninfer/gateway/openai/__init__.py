"""What the two OpenAI protocols share: error bodies, models, authorization, usage."""
