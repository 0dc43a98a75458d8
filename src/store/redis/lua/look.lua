-- How far the shard is, and what it has lost so far.
return { seq, call('LRANGE', root .. 'losses', 0, -1) }
