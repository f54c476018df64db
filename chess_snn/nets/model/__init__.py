"""The network as it is trained: neurons, layers, heads, and its weights in a file."""
