"""The kernel that learns itself: evidence and its gradient, a short descent, features, axes, and the learner made of them."""
