"""The points that functions stand on, and the rows of a kernel over them."""
