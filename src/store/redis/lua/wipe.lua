-- One step of removing what stands under a prefix in the slot of KEYS[1]. ARGV[1]: the cursor; ARGV[2]:
-- the pattern. Answers the next cursor.
local found = redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', 1000)
for _, key in ipairs(found[2]) do
  redis.call('UNLINK', key)
end
return found[1]
