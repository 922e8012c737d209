"""Model files: found, converted once, and read into a decoder and a frontend's facts.

Owns file formats and the conversion cache. Does not own the mathematics of a model.
"""

from ninfer.runtime.loading.drafter import load_drafter
from ninfer.runtime.loading.load import LoadedModel, load_model
from ninfer.runtime.loading.progress import LoadProgress, LoadStage, Progress

__all__ = ["LoadProgress", "LoadStage", "LoadedModel", "Progress", "load_drafter", "load_model"]
