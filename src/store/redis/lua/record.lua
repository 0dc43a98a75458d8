-- A notification's value: a head, index entries, the ids of its deliveries, the record, the inputs.
local N_HEAD = '>I7I5BBI6BI4I6I6BI4I4c32'
local N_SIZE = 78
local ENTRY, EPOCH, CHUNK, BUCKETS = 7, 4096, 16, 256

local function notification(raw)
  local n = {}
  n.pos, n.ordinal, n.state, n.held, n.ended, n.count, n.repeats, n.remembered, n.keep, n.entries,
    n.record, n.inputs, n.print = take(N_HEAD, raw)
  return n
end

local function delivery_id(n, raw, place)
  local from = N_SIZE + n.entries * ENTRY + (place - 1) * 12
  return sub(raw, from + 1, from + 12)
end

-- Search: an entry is a score in a small bucket, which packs well. A value's entries are in one bucket
-- of each epoch; an owner, who has most of them, is spread by time over all buckets of it.
local function bucket_of(ordinal, kind, hash)
  local bucket = hash % BUCKETS
  if kind == 'o' then bucket = (hash + floor(ordinal / CHUNK)) % BUCKETS end
  return root .. 'x' .. floor(ordinal / EPOCH) .. ':' .. bucket
end

local function index_entry(command, n, kind, hash, nid)
  local member = pack('>I7', n.pos) .. kind .. nid
  if command == 'ZADD' then
    call('ZADD', bucket_of(n.ordinal, kind, hash), int(hash), member)
  else
    call('ZREM', bucket_of(n.ordinal, kind, hash), member)
  end
end

-- States that people look for and few records are in.
local function index_state(command, n, owner, state, nid)
  if state >= PARKED and state <= BOUNCED then
    index_entry(command, n, 's', (owner + (state + 1) * 2654435761) % 281474976710656, nid)
  end
end

local function entries(n, raw)
  local list = {}
  for i = 0, n.entries - 1 do
    local kind, hash = take('>c1I6', raw, N_SIZE + i * ENTRY + 1)
    list[i + 1] = { kind, hash }
  end
  return list
end

-- When each age comes: content, record, and the hold of what failed or is parked.
local function ages(n, nid)
  if n.ended == 0 then
    return
  elseif n.held == 1 then
    call('ZADD', root .. 'holds', int(n.remembered), nid)
  else
    if n.inputs > 0 then call('ZADD', root .. 'contents', int(n.ended + n.keep), nid) end
    call('ZADD', root .. 'ends', int(n.ended), nid)
  end
end

local function forget_ages(nid)
  call('ZREM', root .. 'holds', nid)
  call('ZREM', root .. 'contents', nid)
  call('ZREM', root .. 'ends', nid)
end

-- Tombstones: small packed hashes whose number grows with theirs, one bucket at a time (linear hashing).
local function tombs()
  return tonumber(stood[6] or '1')
end

local function tomb_of(nid, buckets)
  local half = 1
  while half * 2 <= buckets do half = half * 2 end
  local hash = take('>I4', nid, 5)
  local bucket = hash % (half * 2)
  if bucket >= buckets then bucket = hash % half end
  return root .. 'z' .. bucket
end
