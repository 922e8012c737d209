"""Settings every test shares: reproducible property tests without deadlines."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "normal",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("slow", settings.get_profile("normal"), max_examples=2000)
settings.load_profile("slow" if os.environ.get("NINFER_SLOW") else "normal")
