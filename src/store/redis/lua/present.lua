-- The nodes that take work, by when they were last heard of. ARGV[1]: the time or -1; ARGV[2]: a node;
-- ARGV[3]: how long one counts; ARGV[4]: 1 where it is there, 0 where it leaves, 2 for a look. Answers the time and the nodes.
local call = redis.call
local now = tonumber(ARGV[1])
if now < 0 then
  local time = call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
if ARGV[4] == '0' then
  call('ZREM', KEYS[1], ARGV[2])
elseif ARGV[4] == '1' then
  call('ZADD', KEYS[1], now, ARGV[2])
end
call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[3]))
-- From before the clock stepped back: who is still there says so again.
call('ZREMRANGEBYSCORE', KEYS[1], '(' .. now, '+inf')
return { now, call('ZRANGE', KEYS[1], 0, 255) }
