"""The Dagster side: assets, checks, sensors and schedules over the library ``knowledge``."""
