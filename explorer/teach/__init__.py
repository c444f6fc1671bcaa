"""What explains: ``ex.help``, the words of other systems, exercises, and the tables of the lessons."""
