"""What all algorithms share: the plan, the state, the estimator and what it shows."""
