"""What the vocabulary exports is what it defines."""

import importlib
import pkgutil

from ninfer import contract


def test_every_public_definition_is_exported():
    defined = set()
    for module in pkgutil.iter_modules(contract.__path__):
        loaded = importlib.import_module(f"ninfer.contract.{module.name}")
        defined |= {
            name
            for name, value in vars(loaded).items()
            if not name.startswith("_") and getattr(value, "__module__", None) == loaded.__name__
        }
    assert defined <= set(contract.__all__)
    assert len(contract.__all__) == len(set(contract.__all__))
    assert all(hasattr(contract, name) for name in contract.__all__)
