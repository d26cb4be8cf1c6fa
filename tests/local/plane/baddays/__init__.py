"""Bad days of the plane itself: killed, out of space, damaged. No other server is asked; these are promises of ours."""
