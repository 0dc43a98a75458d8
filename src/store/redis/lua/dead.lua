-- What was heard of one owner's tokens, as much of it as is in this shard. KEYS[1]: the places, which are the moment
-- in 15 digits and the id, in the order of the texts; KEYS[2]: by id the moment and what was heard. ARGV[1]: which verb.
local call, sub = redis.call, string.sub
local DIGITS = 15

local function drop(place)
  call('ZREM', KEYS[1], place)
  call('HDEL', KEYS[2], sub(place, DIGITS + 1))
end

-- ARGV[2]: the time or -1; ARGV[3]: how long one is kept; ARGV[4]: how many that are older go. Lists to which
-- nothing comes any more go by themselves.
local function drop_old()
  local now = tonumber(ARGV[2])
  if now < 0 then
    local time = call('TIME')
    now = time[1] * 1000 + math.floor(time[2] / 1000)
  end
  local by = string.format('%015d', math.max(0, now - tonumber(ARGV[3])))
  for _, place in ipairs(call('ZRANGEBYLEX', KEYS[1], '-', '(' .. by, 'LIMIT', 0, ARGV[4])) do drop(place) end
  call('PEXPIRE', KEYS[1], ARGV[3])
  call('PEXPIRE', KEYS[2], ARGV[3])
end

-- ARGV[5]: the place; ARGV[6]: what was heard. A later one stays.
local function add()
  local place = ARGV[5]
  local id, moment = sub(place, DIGITS + 1), sub(place, 1, DIGITS)
  local before = call('HGET', KEYS[2], id)
  local known = before and sub(before, 1, DIGITS)
  if not known or known < moment then
    call('HSET', KEYS[2], id, moment .. ARGV[6])
    call('ZADD', KEYS[1], 0, place)
    if known then call('ZREM', KEYS[1], known .. id) end
  end
  drop_old()
  return 1
end

-- ARGV[2]: the place.
local function take_back()
  if call('ZSCORE', KEYS[1], ARGV[2]) then drop(ARGV[2]) end
  return 1
end

-- ARGV[2]: after which place; ARGV[3]: most. Answers places, and what was heard.
local function list()
  local found = {}
  for _, place in ipairs(call('ZRANGEBYLEX', KEYS[1], '(' .. ARGV[2], '+', 'LIMIT', 0, ARGV[3])) do
    local heard = call('HGET', KEYS[2], sub(place, DIGITS + 1))
    found[#found + 1] = place
    found[#found + 1] = heard and sub(heard, DIGITS + 1) or ''
  end
  return found
end

local verbs = { add = add, take_back = take_back, list = list }
return { verbs[ARGV[1]]() }
