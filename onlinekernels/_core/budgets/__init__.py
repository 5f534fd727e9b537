"""Which terms stay."""
