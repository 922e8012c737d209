"""Lets ``python -m ninfer.gateway`` serve."""

from ninfer.gateway.main import main

main()
