-- How far the shard is, in which era, and what it has lost so far.
return { seq, era, call('LRANGE', root .. 'losses', 0, -1) }
