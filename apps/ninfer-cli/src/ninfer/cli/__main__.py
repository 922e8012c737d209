"""Lets ``python -m ninfer.cli`` run the command."""

from ninfer.cli.main import main

main()
