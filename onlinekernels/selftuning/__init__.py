"""What a kernel that learns itself is made of: evidence and its gradient, a short descent, features on one footing, axes."""
