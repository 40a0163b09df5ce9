"""The only place that knows both what the platform says and what it means, and the warehouse."""
