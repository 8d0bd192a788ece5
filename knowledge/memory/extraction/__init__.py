"""Facts told in the turns of a conversation, found by a local model or by grammar."""
