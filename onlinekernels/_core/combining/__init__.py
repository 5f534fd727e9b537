"""How an ensemble weighs its members."""
