"""Dask workers and schedulers of a campaign; knows neither Prefect nor MLflow."""
