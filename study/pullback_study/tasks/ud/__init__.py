"""Real sentences with gold dependency trees: parts of speech of the English Web Treebank."""
