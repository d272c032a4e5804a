"""Systems: one room each, with plan, planner, learner, kernels and account side by side, on common ground."""
