-- The end of mending. ARGV[6]: what this node had seen; ARGV[7]: a line for people; ARGV[8]: the era in
-- which it found the shard; ARGV[9]: a name for a new era, so that all others find out too. Where
-- another node has begun one meanwhile, that one stands. The latest hundred lines are kept.
if tonumber(ARGV[6]) > seq then call('SET', KEYS[1], ARGV[6]) end
if era == ARGV[8] and ARGV[9] ~= '' then
  era = ARGV[9]
  call('SET', root .. 'era', era)
end
call('RPUSH', root .. 'losses', ARGV[7])
call('LTRIM', root .. 'losses', -100, -1)
return { call('INCR', KEYS[1]), era }
