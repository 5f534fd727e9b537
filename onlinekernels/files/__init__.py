"""Model files."""
