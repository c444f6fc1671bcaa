"""What a refused step would compute: its illegal order executed at the smallest sizes that show it."""
