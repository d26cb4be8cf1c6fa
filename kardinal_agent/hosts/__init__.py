"""The hosts of pull requests between the runs of promotions: what was told them, and what is asked of them for all."""
