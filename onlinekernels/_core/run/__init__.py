"""The loop over a stream: pieces, hypotheses, scalers."""
