"""The effects of a promotion outside its process, times the faults that can meet them."""
