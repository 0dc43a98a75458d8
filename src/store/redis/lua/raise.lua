-- The newest version of collapse groups, never lowered. ARGV[5..]: group, version (order kept by its
-- text), until when it is kept.
for at = 5, #ARGV, 3 do
  local group, version, until_ = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2])
  local newest = call('HGET', root .. 'groups', group)
  if not newest or newest < version then call('HSET', root .. 'groups', group, version) end
  call('ZADD', root .. 'grouped', 'GT', until_, group)
end
return { finish() }
