-- Suppressions: for an address one hash, of which a field is the word's half of an id, and its value since when and
-- until when in 15 digits each, then what only Belfry reads; for an owner and a shard one list of places, which are
-- since when and the two halves of the id, in the order of the texts. ARGV[1]: which verb.
local call, sub = redis.call, string.sub
local DIGITS, HALF = 15, 12

local function place(value, word)
  return sub(value, 1, DIGITS) .. sub(KEYS[1], -HALF) .. word
end

-- Where there are as many as may be, what is over goes.
local function has_room(since, most)
  if call('HLEN', KEYS[1]) < most then return true end
  local all = call('HGETALL', KEYS[1])
  for at = 1, #all, 2 do
    local word, value = all[at], all[at + 1]
    if tonumber(sub(value, DIGITS + 1, 2 * DIGITS)) <= tonumber(since) then
      call('HDEL', KEYS[1], word)
      call('ZREM', KEYS[2], place(value, word))
    end
  end
  return call('HLEN', KEYS[1]) < most
end

-- KEYS: address, list. ARGV[2]: the word; ARGV[3]: since; ARGV[4]: until; ARGV[5]: the rest; ARGV[6]: how many others
-- leave room for it. Answers since when it is, or nothing where there is no room.
local function put()
  local word, since = ARGV[2], ARGV[3]
  local before = call('HGET', KEYS[1], word)
  if not before and not has_room(since, tonumber(ARGV[6])) then return '' end
  if before and sub(before, DIGITS + 1, 2 * DIGITS) > since then since = sub(before, 1, DIGITS) end
  local value = since .. ARGV[4] .. ARGV[5]
  if before then call('ZREM', KEYS[2], place(before, word)) end
  call('HSET', KEYS[1], word, value)
  call('ZADD', KEYS[2], 0, place(value, word))
  return since
end

-- KEYS: address, list. ARGV[2]: the word. Only what is on this owner's list.
local function lift()
  local value = call('HGET', KEYS[1], ARGV[2])
  if value and call('ZREM', KEYS[2], place(value, ARGV[2])) == 1 then call('HDEL', KEYS[1], ARGV[2]) end
  return 1
end

-- KEYS: addresses. Answers the values of each.
local function find()
  local found = {}
  for at, key in ipairs(KEYS) do found[at] = call('HVALS', key) end
  return found
end

-- KEYS[1]: the list. ARGV[2]: before which place, as a range has it; ARGV[3]: most. Answers places and values. A
-- place whose entry is gone, evicted or deleted by hand, goes as well: it would end every list there.
local ROUNDS = 16
local function list()
  local root = sub(KEYS[1], 1, -(#'sups' + 16 + 1))
  local found
  for _ = 1, ROUNDS do
    found = {}
    local gone = false
    for _, at in ipairs(call('ZREVRANGEBYLEX', KEYS[1], ARGV[2], '-', 'LIMIT', 0, ARGV[3])) do
      local address, word = sub(at, DIGITS + 1, DIGITS + HALF), sub(at, DIGITS + HALF + 1)
      local value = call('HGET', root .. 'sup' .. address, word)
      if value then
        found[#found + 1] = at
        found[#found + 1] = value
      else
        gone = true
        call('ZREM', KEYS[1], at)
      end
    end
    if not gone then break end
  end
  return found
end

local verbs = { put = put, lift = lift, find = find, list = list }
return { verbs[ARGV[1]]() }
