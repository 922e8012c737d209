"""Engine, scheduler, program and models."""
