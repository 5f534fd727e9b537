"""Representations of f: terms, weights, maps, trees, posteriors."""
