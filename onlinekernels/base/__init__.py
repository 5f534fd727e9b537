"""What all algorithms share: the plan, the state, the learner and what it shows."""
