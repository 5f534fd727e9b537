from numpy.typing import NDArray

from onlinekernels._core.tree import Tree

def pass_over_block(
    gram: NDArray, first: int, y: NDArray, alpha: NDArray, scores: NDArray, step: float
) -> None: ...
def pass_over_tree(tree: Tree, points: NDArray, scale: float, y: NDArray, alpha: NDArray, step: float) -> None: ...
