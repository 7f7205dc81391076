"""The paper's studies: each a config, a trainer, and tables and figures made from run directories."""
