-- The nodes that take work, by when they were last heard of, and what the clocks of all say. ARGV[1]: the time or -1;
-- ARGV[2]: a node; ARGV[3]: how long one counts; ARGV[4]: 1 where it takes work, 3 where it only tells its time, 0 where it
-- leaves, 2 for a look; ARGV[5]: how far its clock was ahead of this one at last, or nothing.
-- Answers the time, the nodes, and how far the clocks of others are ahead.
local call = redis.call
local now = tonumber(ARGV[1])
if now < 0 then
  local time = call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local counts = tonumber(ARGV[3])
if ARGV[4] == '0' then
  call('ZREM', KEYS[1], ARGV[2])
  call('HDEL', KEYS[2], ARGV[2])
elseif ARGV[4] == '1' then
  call('ZADD', KEYS[1], now, ARGV[2])
end
call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - counts)
-- From before the clock stepped back: who is still there says so again.
call('ZREMRANGEBYSCORE', KEYS[1], '(' .. now, '+inf')
if (ARGV[4] == '1' or ARGV[4] == '3') and ARGV[5] ~= '' then
  call('HSET', KEYS[2], ARGV[2], string.format('%d:%s', now, ARGV[5]))
end
local clocks = {}
local told = call('HGETALL', KEYS[2])
for at = 1, #told, 2 do
  local heard, ahead = string.match(told[at + 1], '^(%d+):(-?%d+)$')
  heard = tonumber(heard)
  if not heard or heard > now or heard <= now - counts then
    call('HDEL', KEYS[2], told[at])
  elseif told[at] ~= ARGV[2] and #clocks < 256 then
    clocks[#clocks + 1] = ahead
  end
end
return { now, call('ZRANGE', KEYS[1], 0, 255), clocks }
