"""What a promotion does outside, times what can happen to it there."""
