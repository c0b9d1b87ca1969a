"""The bake-off."""
