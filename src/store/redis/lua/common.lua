-- The beginning of every script. KEYS[1] is the shard's sequence; all other keys of the shard have
-- its name up to "seq" in front, so that they share its slot. Times are Unix milliseconds.
-- ARGV[1]: the highest sequence that this node has seen. ARGV[2]: the era that it knows, or "?". ARGV[3]:
-- the time, or -1 for the server's. ARGV[4], ARGV[5]: whom to tell that something is due, and what.
local root = string.sub(KEYS[1], 1, -4)
local call, pack, take, sub, floor = redis.call, struct.pack, struct.unpack, string.sub, math.floor
local byte, char = string.byte, string.char

-- All that is small and asked for by many verbs, in one go. The last one never is: while a slot is on its
-- way to another server, what is missing there may have gone already, and the call fails before anything
-- was written instead of half way.
local stood = call('MGET', KEYS[1], root .. 'era', root .. 'floor', root .. 'pos', root .. 'ord', root .. 'buckets',
  root .. 'hold', root .. 'quiet', root .. 'never')
local seq, era = tonumber(stood[1] or '0'), stood[2] or ''
if tonumber(ARGV[1]) > seq or (ARGV[2] ~= '?' and ARGV[2] ~= era) then
  -- This server has lost what another one acknowledged: nothing is read from it nor written to it before
  -- this node has put back what it knows.
  return redis.error_reply('BELFRYPAST the shard has gone back to ' .. seq)
end

-- What was due at or before it is held, since the store was restored from a backup; mostly there is none.
local hold = stood[7]
local beyond = hold and '(' .. hold or '-inf'

-- The store's time. Few verbs need it.
local function clock()
  local given = tonumber(ARGV[3])
  if given >= 0 then return given end
  local time = call('TIME')
  return time[1] * 1000 + floor(time[2] / 1000)
end

-- A whole number as a text: Redis would print a Lua number as a float, which costs more than most calls.
local function int(number)
  return string.format('%d', number)
end

-- State codes: the lowest is the least finished.
local WAITING, SENDING, PARKED, UNKNOWN, FAILED, BOUNCED = 2, 3, 4, 5, 6, 7
local ALONE, SPENT, HELD_ALONE, RECEIPT = 1, 2, 4, 8

-- A delivery's value, big-endian, from byte 1: position 1-7, place in its notification 8, notification
-- 9-20, lengths of tenant, collapse group and lane 21-23; what verbs write: state 24, flags 25, ended
-- 26-31, rev 32-37, fence 38-43, nonce 44-51, lapse 52-57, worker 58-81, lease 82-87, due 88-93; of the
-- last settle the fence 94-99, nonce 100-107, rev 108-113. Then the three texts, then the body, which only
-- Rust reads. What a claim and a spend write overrules the body. Verbs read and write in place and leave
-- alone what they don't need: taking all of it apart costs more than all else that they do.
local D_SIZE = 113
local FRONT = D_SIZE + 3 * 255

-- All but (most of) the body.
local function front(key)
  local raw = call('GETRANGE', key, 0, FRONT - 1)
  if raw == '' then return nil end
  return raw
end

local function has(flags, bit)
  return floor(flags / bit) % 2 == 1
end

-- Six bytes as a number.
local function six(raw, from)
  return (take('>I6', raw, from))
end

local function notification_of(raw)
  return sub(raw, 9, 20)
end

local function lane_of(raw)
  local tenant, collapse, lane = byte(raw, 21, 23)
  local from = D_SIZE + tenant + collapse
  return sub(raw, from + 1, from + lane)
end

-- Whether a claim is this token's (fence and nonce): what every write under a claim compares.
local function held_by(raw, token)
  return byte(raw, 24) == SENDING and sub(raw, 38, 51) == token
end
