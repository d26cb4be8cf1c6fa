"""Gates: what their expressions see, what they answer, and when that is looked at again (DD 5.2)."""
