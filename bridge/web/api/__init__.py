"""What the API answers: a module for each kind of thing, and the shapes of the JSON."""
