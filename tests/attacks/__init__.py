"""What a tenant, a CI token, a Git writer or a Git host may try, and what has to come of it."""
