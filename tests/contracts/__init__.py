"""What holds of every estimator: `registry.py` lists them, with small data."""
