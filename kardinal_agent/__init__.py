"""The agent: executes PromotionSteps by writing to Git, and proves what runs."""
