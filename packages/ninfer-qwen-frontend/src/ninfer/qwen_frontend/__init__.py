"""What Qwen-style output means."""
