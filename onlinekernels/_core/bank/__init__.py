"""Thousands of tiny models at once."""
