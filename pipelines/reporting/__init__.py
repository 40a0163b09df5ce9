"""What people see of the warehouse: the report, its plots, the status, the page of rules, helpers of notebooks."""
