"""Steps as data: read from text, offered at a node, proposed by refusals, replayed, saved."""
