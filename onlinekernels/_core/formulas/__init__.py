"""Each formula once: losses, moves, frames, vectors, triangles."""
