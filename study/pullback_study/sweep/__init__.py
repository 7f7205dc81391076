"""Many runs at once: a file of fields and their values, pools of workers, and what came out best."""
