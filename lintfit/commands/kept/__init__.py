"""What an earlier check made of the parts of a tree, taken again where nothing that they hang on has changed."""
