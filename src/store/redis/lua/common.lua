-- The beginning of every script. KEYS[1] is the shard's sequence; all other keys of the shard have
-- its name up to "seq" in front, so that they share its slot. Times are Unix milliseconds.
-- ARGV[1]: the highest sequence that this node has seen. ARGV[2]: the era that it knows, or "?". ARGV[3]:
-- the time, or -1 for the server's. ARGV[4], ARGV[5]: whom to tell that something is due, and what.
local root = string.sub(KEYS[1], 1, -4)
local call, pack, take, sub, floor = redis.call, struct.pack, struct.unpack, string.sub, math.floor

-- All that is small and asked for by many verbs, in one go. The last one never is: while a slot is on its
-- way to another server, what is missing there may have gone already, and the call fails before anything
-- was written instead of half way.
local stood = call('MGET', KEYS[1], root .. 'era', root .. 'floor', root .. 'pos', root .. 'ord', root .. 'buckets',
  root .. 'hold', root .. 'never')
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

-- A delivery's value: a head of fixed length, three short strings, then the body, which only Rust reads.
-- What a claim and a spend write stands in the head and overrules the body.
local D_HEAD = '>I7BBI6I6I6c8I6c24I6I6I6c8I6Bc12BBB'
local D_SIZE = 113
local CLAIM = '>BBI6I6I6c8I6c24'
local CLAIM_FROM, LAPSE_FROM = 7, 35

local function has(flags, bit)
  return floor(flags / bit) % 2 == 1
end

local function delivery(raw)
  local d, a, b, c = {}, 0, 0, 0
  d.pos, d.state, d.flags, d.ended, d.rev, d.fence, d.nonce, d.lapse, d.worker, d.lease, d.due,
    d.done_fence, d.done_nonce, d.done_rev, d.slot, d.nid, a, b, c = take(D_HEAD, raw)
  d.tenant = sub(raw, D_SIZE + 1, D_SIZE + a)
  d.collapse = sub(raw, D_SIZE + a + 1, D_SIZE + a + b)
  d.lane = sub(raw, D_SIZE + a + b + 1, D_SIZE + a + b + c)
  return d
end

-- Whether a claim is this token's: what every write under a claim compares.
local function held_by(d, fence, nonce)
  return d.state == SENDING and d.fence == fence and d.nonce == nonce
end

-- The head and the short strings.
local function front(key)
  local raw = call('GETRANGE', key, 0, 880)
  if raw == '' then return nil end
  return delivery(raw)
end
