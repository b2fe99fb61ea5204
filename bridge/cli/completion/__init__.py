"""What shells complete after `seb`: read from the parser, and written in the language of each."""
