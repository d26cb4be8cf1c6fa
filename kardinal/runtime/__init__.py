"""controller-runtime for asyncio, on top of `kardinal.kube`."""
