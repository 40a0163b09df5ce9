"""The stand-in platform: both families on loopback, with faults and every reading of what is not shown."""
