"""What an example does to a function."""
