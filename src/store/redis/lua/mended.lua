-- The end of mending. ARGV[6]: what this node had seen; ARGV[7]: a line for people, or nothing; ARGV[8]: the
-- era in which it found the shard; ARGV[9]: a name for a new era, so that all others find out too. Where
-- another node has begun one meanwhile, that one stands. ARGV[10]: the run of the server; ARGV[11]: for how
-- long no claims are given, where a new era begins. The latest hundred lines are kept.
if tonumber(ARGV[6]) > seq then call('SET', KEYS[1], ARGV[6]) end
if era == ARGV[8] and ARGV[9] ~= '' then
  era = ARGV[9]
  call('SET', root .. 'era', era)
  call('SET', root .. 'quiet', int(clock() + ARGV[11]))
end
if ARGV[7] ~= '' then
  call('RPUSH', root .. 'losses', ARGV[7])
  call('LTRIM', root .. 'losses', -100, -1)
end
call('SET', root .. 'run', ARGV[10])
return { call('INCR', KEYS[1]), era }
