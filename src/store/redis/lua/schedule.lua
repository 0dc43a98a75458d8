-- Schedules: one text each, which only Belfry reads. ARGV[1]: which verb. KEYS: the texts by id; when to look at which;
-- and of an owner the names, each with its id behind a zero byte.
local call = redis.call
local texts, looks, names = KEYS[1], KEYS[2], KEYS[3]

-- ARGV: id, as it was read, as it is to be (nothing stands for none), when to look at it or nothing, name, most of an
-- owner. Answers 1 where it is so now, 0 where another has written it, 2 where there is no room.
local function write()
  local id, before, after, look, name = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6] .. '\0' .. ARGV[2]
  local now = call('HGET', texts, id) or ''
  if now ~= after and now ~= before then return 0 end
  if after == '' then
    call('HDEL', texts, id)
    call('ZREM', looks, id)
    call('ZREM', names, name)
    return 1
  end
  if now == '' and call('ZCARD', names) >= tonumber(ARGV[7]) then return 2 end
  call('HSET', texts, id, after)
  call('ZADD', names, 0, name)
  if look == '' then call('ZREM', looks, id) else call('ZADD', looks, look, id) end
  return 1
end

-- ARGV: id. Answers its text.
local function find() return call('HGET', texts, ARGV[2]) or '' end

-- ARGV: after which name, how many. Answers name and text of each.
local function list()
  local found = {}
  for _, member in ipairs(call('ZRANGEBYLEX', names, ARGV[2], '+', 'LIMIT', 0, ARGV[3])) do
    local name = string.sub(member, 1, -14)
    found[#found + 1] = { name, call('HGET', texts, string.sub(member, -12)) or '' }
  end
  return found
end

-- ARGV: the time, when others are given them, how many. Answers when to look at the next, and the texts.
local function due()
  local found = {}
  for _, id in ipairs(call('ZRANGEBYSCORE', looks, '-inf', ARGV[2], 'LIMIT', 0, ARGV[4])) do
    local text = call('HGET', texts, id)
    if text then
      call('ZADD', looks, ARGV[3], id)
      found[#found + 1] = text
    else
      call('ZREM', looks, id)
    end
  end
  local first = call('ZRANGEBYSCORE', looks, '-inf', '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  return { first[2] or '', found }
end

local verbs = { write = write, find = find, list = list, due = due }
return { verbs[ARGV[1]]() }
