"""The ninfer command."""
