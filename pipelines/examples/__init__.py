"""Scripts to start from: the dlt sources in pipelines of users."""
