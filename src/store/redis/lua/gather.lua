-- What gathers. KEYS[1]: the shard's slots by when they are due; all other names are made from it, with the same tag.
-- Of a group: which slot is open. Of a slot, which is a group and the digits of its end: its items, each a field, and
-- under 'o' whose it is. ARGV[1]: which verb.
local call = redis.call
local due = KEYS[1]
local root = string.sub(due, 1, -3)

local function digits(ms)
  return string.format('%.0f', ms)
end

local function items_of(slot)
  return root .. 'gi' .. slot
end

local function open_of(slot)
  return root .. 'go' .. string.sub(slot, 1, 12)
end

-- ARGV from 2 on, for each: group, item, owner, from when it counts, the span, how many a slot holds. Answers the end
-- of each one's slot.
local function join()
  local ends = {}
  for at = 2, #ARGV, 6 do
    local group, item, owner, now = ARGV[at], ARGV[at + 1], ARGV[at + 2], tonumber(ARGV[at + 3])
    local open = root .. 'go' .. group
    local before = call('HMGET', open, 'until', 'full')
    local till = tonumber(before[1])
    if not till or before[2] == '1' or till <= now then
      till = math.max(now + ARGV[at + 4], (till or 0) + 1)
      call('HSET', open, 'until', digits(till), 'full', '0')
    end
    local slot = group .. digits(till)
    local items = items_of(slot)
    if call('HSETNX', items, 'o', owner) == 1 then call('ZADD', due, digits(till), slot) end
    if call('HSETNX', items, item, '') == 1 and call('HLEN', items) > tonumber(ARGV[at + 5]) then
      call('HSET', open, 'full', '1')
      call('ZADD', due, digits(now), slot)
    end
    ends[#ends + 1] = digits(till)
  end
  return ends
end

-- ARGV: slot, its end, owner, item.
local function rejoin()
  local items = items_of(ARGV[2])
  call('HSETNX', items, 'o', ARGV[4])
  call('HSET', items, ARGV[5], '')
  call('ZADD', due, ARGV[3], ARGV[2])
  return 1
end

-- ARGV: now, how many. Answers when the next is due, then slot, when it is due and owner of each.
local function list()
  local next_ = call('ZRANGEBYSCORE', due, '(' .. ARGV[2], '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
  local found = { next_ or '' }
  local slots = call('ZRANGEBYSCORE', due, '-inf', ARGV[2], 'WITHSCORES', 'LIMIT', 0, ARGV[3])
  for at = 1, #slots, 2 do
    local owner = call('HGET', items_of(slots[at]), 'o')
    found[#found + 1], found[#found + 2], found[#found + 3] = slots[at], slots[at + 1], owner or ''
  end
  return found
end

-- ARGV: slot, how many.
local function items()
  local found, most = {}, tonumber(ARGV[3])
  for _, name in ipairs(call('HKEYS', items_of(ARGV[2]))) do
    if #name == 12 and #found < most then found[#found + 1] = name end
  end
  return found
end

-- ARGV: slot, its end, then items.
local function leave()
  local key, open = items_of(ARGV[2]), open_of(ARGV[2])
  if #ARGV > 3 then call('HDEL', key, unpack(ARGV, 4)) end
  if call('HLEN', key) <= 1 then
    call('DEL', key)
    call('ZREM', due, ARGV[2])
    if call('HGET', open, 'until') == ARGV[3] then call('DEL', open) end
  end
  return 1
end

-- ARGV: slot, until when.
local function put_off()
  return call('ZADD', due, 'XX', ARGV[3], ARGV[2])
end

local verbs = { join = join, rejoin = rejoin, list = list, items = items, leave = leave, put_off = put_off }
return { verbs[ARGV[1]]() }
