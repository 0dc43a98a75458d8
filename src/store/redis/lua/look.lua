-- How far the shard is, in which era, what it has lost so far, on which run of a server it was written last,
-- and which run this is.
local run = string.match(call('INFO', 'server'), 'run_id:(%x+)') or ''
return { seq, era, call('LRANGE', root .. 'losses', 0, -1), call('GET', root .. 'run') or '', run }
