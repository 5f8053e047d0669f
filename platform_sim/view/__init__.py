"""What people see of any run."""
