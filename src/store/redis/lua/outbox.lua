-- What the outbox provider would have sent: few, newest first. ARGV[1]: which verb; ARGV[2]: whether the same
-- was asked before, and its answer lost. A message's place is its number, in all of them and in its owner's.
local verb, root = ARGV[1], string.sub(KEYS[1], 1, -4)
local call = redis.call

local function drop(number)
  local owner = call('HGET', root .. 'outboxowner', number)
  if owner then call('ZREM', root .. 'outboxof:' .. owner, number) end
  call('HDEL', root .. 'outboxowner', number)
  call('HDEL', root .. 'outboxto', number)
  call('HDEL', root .. 'outboxbody', number)
  call('ZREM', root .. 'outboxall', number)
end

-- Of so many messages the one is looked for that this very call has kept before.
local MOST_LATER = 32

-- ARGV[3]: owner; ARGV[4]: to; ARGV[5]: most to keep; ARGV[6]: the message.
local function add()
  local later = ARGV[2] == '1' and call('ZREVRANGE', root .. 'outboxof:' .. ARGV[3], 0, MOST_LATER - 1) or {}
  for _, number in ipairs(later) do
    if call('HGET', root .. 'outboxbody', number) == ARGV[6] then return tonumber(number) end
  end
  local number = call('INCR', KEYS[1])
  call('HSET', root .. 'outboxowner', number, ARGV[3])
  call('HSET', root .. 'outboxto', number, ARGV[4])
  call('HSET', root .. 'outboxbody', number, ARGV[6])
  call('ZADD', root .. 'outboxof:' .. ARGV[3], number, number)
  call('ZADD', root .. 'outboxall', number, number)
  local beyond = call('ZCARD', root .. 'outboxall') - tonumber(ARGV[5])
  if beyond > 0 then
    for _, old in ipairs(call('ZRANGE', root .. 'outboxall', 0, math.min(beyond, 128) - 1)) do drop(old) end
  end
  return number
end

-- ARGV[3]: owner; ARGV[4]: to, or nothing; ARGV[5]: after this number; ARGV[6]: most.
local function list()
  local found = {}
  for _, number in ipairs(call('ZREVRANGEBYSCORE', root .. 'outboxof:' .. ARGV[3], '+inf', '(' .. ARGV[5])) do
    if #found >= 2 * tonumber(ARGV[6]) then break end
    if ARGV[4] == '' or call('HGET', root .. 'outboxto', number) == ARGV[4] then
      found[#found + 1] = number
      found[#found + 1] = call('HGET', root .. 'outboxbody', number)
    end
  end
  return found
end

-- ARGV[3]: owner; ARGV[4]: to, or nothing; ARGV[5]: most.
local function clear()
  local gone = 0
  for _, number in ipairs(call('ZRANGE', root .. 'outboxof:' .. ARGV[3], 0, -1)) do
    if gone >= tonumber(ARGV[5]) then break end
    if ARGV[4] == '' or call('HGET', root .. 'outboxto', number) == ARGV[4] then
      drop(number)
      gone = gone + 1
    end
  end
  return gone
end

local verbs = { add = add, list = list, clear = clear }
return { verbs[verb]() }
