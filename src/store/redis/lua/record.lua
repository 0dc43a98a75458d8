-- A notification's value, big-endian, from byte 1: position 1-7, ordinal 8-12, state 13, held 14, ended
-- 15-20, how many deliveries 21, repeats 22-25, remembered until 26-31, how long content is kept 32-37,
-- hash of its owner 38-43, lengths of record and inputs 44-51, fingerprint 52-83; then the ids of its
-- deliveries, the record, the inputs.
local N_SIZE = 83
local EPOCH, CHUNK, BUCKETS, ENTRY = 4096, 16, 256, 26
-- Of an epoch of which no more than so many are left, the texts are cleared of all others.
local THIN = EPOCH / 8

local function delivery_id(raw, nth)
  local from = N_SIZE + (nth - 1) * 12
  return sub(raw, from + 1, from + 12)
end

-- Search: what has one hash stands in one text of each epoch, in the order of acceptance; an owner, who
-- has most of them, is spread by time over all texts of it. Nothing is taken out by itself: what is found
-- is read and compared, and an epoch goes when nothing of it is left.
local function index_text(ordinal, kind, hash)
  local bucket = kind == 'o' and (hash + floor(ordinal / CHUNK)) % BUCKETS or hash % BUCKETS
  return root .. 'x' .. int(floor(ordinal / EPOCH)) .. ':' .. int(bucket)
end

-- `entry`: the kind, then six bytes of hash.
local function index_entry(pos, ordinal, entry, nid)
  call('APPEND', index_text(ordinal, sub(entry, 1, 1), six(entry, 2)), entry .. pos .. nid)
end

-- States that people look for and few records are in. `raw`: a notification's.
local function index_state(raw, state, nid)
  if state < PARKED or state > BOUNCED then return end
  local hash = (six(raw, 38) + (state + 1) * 2654435761) % 281474976710656
  index_entry(sub(raw, 1, 7), take('>I5', raw, 8), 's' .. pack('>I6', hash), nid)
end

-- When each age comes: content, record, and the hold of what failed or is parked. Lists, since what ends
-- later comes of age later; who has begun anew meanwhile is passed over there.
local function ages(raw, nid, ended, held)
  if ended == 0 then
    return
  elseif held == 1 then
    call('ZADD', root .. 'holds', int(six(raw, 26)), nid)
  else
    local entry = pack('>I6', ended) .. nid
    local keep, _, _, inputs = take('>I6I6I4I4', raw, 32)
    if inputs > 0 then append('c' .. int(keep), entry) end
    append('ends', entry)
  end
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
  return root .. 'z' .. int(bucket)
end
