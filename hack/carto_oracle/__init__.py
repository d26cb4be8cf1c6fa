"""The JSONPath of client-go as a program, to compare ours with."""
