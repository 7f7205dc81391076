"""ListOps: nested operations on digits, with gold dependency heads."""
