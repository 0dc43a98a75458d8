-- What the outbox provider would have sent: few, newest first. ARGV[1]: which verb. A message's place is
-- its number, in all of them and in its owner's.
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

-- ARGV[2]: owner; ARGV[3]: to; ARGV[4]: most to keep; ARGV[5]: the message.
local function add()
  local number = call('INCR', KEYS[1])
  call('HSET', root .. 'outboxowner', number, ARGV[2])
  call('HSET', root .. 'outboxto', number, ARGV[3])
  call('HSET', root .. 'outboxbody', number, ARGV[5])
  call('ZADD', root .. 'outboxof:' .. ARGV[2], number, number)
  call('ZADD', root .. 'outboxall', number, number)
  local beyond = call('ZCARD', root .. 'outboxall') - tonumber(ARGV[4])
  if beyond > 0 then
    for _, old in ipairs(call('ZRANGE', root .. 'outboxall', 0, math.min(beyond, 128) - 1)) do drop(old) end
  end
  return number
end

-- ARGV[2]: owner; ARGV[3]: to, or nothing; ARGV[4]: after this number; ARGV[5]: most.
local function list()
  local found = {}
  for _, number in ipairs(call('ZREVRANGEBYSCORE', root .. 'outboxof:' .. ARGV[2], '+inf', '(' .. ARGV[4])) do
    if #found >= 2 * tonumber(ARGV[5]) then break end
    if ARGV[3] == '' or call('HGET', root .. 'outboxto', number) == ARGV[3] then
      found[#found + 1] = number
      found[#found + 1] = call('HGET', root .. 'outboxbody', number)
    end
  end
  return found
end

-- ARGV[2]: owner; ARGV[3]: to, or nothing; ARGV[4]: most.
local function clear()
  local gone = 0
  for _, number in ipairs(call('ZRANGE', root .. 'outboxof:' .. ARGV[2], 0, -1)) do
    if gone >= tonumber(ARGV[4]) then break end
    if ARGV[3] == '' or call('HGET', root .. 'outboxto', number) == ARGV[3] then
      drop(number)
      gone = gone + 1
    end
  end
  return gone
end

local verbs = { add = add, list = list, clear = clear }
return { verbs[verb]() }
