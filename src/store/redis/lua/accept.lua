-- Keeps new notifications, and finds those that are known. KEYS[2..]: the notifications.
-- ARGV[6]: whether the same was asked before, and its answer lost; ARGV[7..]: per item a position that is newer
-- than all before of this node, its id, its value after the ordinal, its index entries, how many deliveries, then
-- each one's id, value after the position, lane with its side in front (nothing: it does not wait), tenant, and
-- when it is due; then the contents that its inputs name.
-- Per item: 1 (created), a tombstone's value, or the record with its deliveries.
local position = tonumber(stood[4] or '0')
local ordinal = tonumber(stood[5] or '0')
local first = ordinal
local buckets = tombs()
local answers, values, live, made = {}, {}, {}, {}
local found = call('MGET', unpack(KEYS, 2))
local at = 7

local function write(key, value)
  values[#values + 1], values[#values + 2] = key, value
end

-- Of an epoch that takes no more, most may be gone already.
local function seal(epoch)
  local left = call('HGET', root .. 'live', int(epoch))
  if left and tonumber(left) + (live[epoch] or 0) <= THIN then call('HSET', root .. 'thin', int(epoch), 0) end
end

-- Returns its position.
local function create(key, given, nid, rest, entries)
  position = math.max(position + 1, given)
  local pos = pack('>I7', position)
  local raw = pos .. pack('>I5', ordinal) .. rest
  write(key, raw)
  made[key] = raw
  for from = 1, #entries, 7 do index_entry(pos, ordinal, sub(entries, from, from + 6), nid) end
  local state, held, ended = take('>BBI6', raw, 13)
  index_state(raw, state, nid)
  ages(raw, nid, ended, held)
  local epoch = floor(ordinal / EPOCH)
  if ordinal % EPOCH == 0 then
    call('ZADD', root .. 'epochs', int(position), int(epoch))
    seal(epoch - 1)
  end
  live[epoch] = (live[epoch] or 0) + 1
  ordinal = ordinal + 1
  return pos
end

local function deliver(pos, from)
  local id, value, lane = ARGV[from], ARGV[from + 1], ARGV[from + 2]
  local raw = pos .. value
  write(root .. 'd' .. id, raw)
  made[root .. 'd' .. id] = raw
  if lane == '' then return count_state(byte(raw, 24), '', 1) end
  enqueue(lane, ARGV[from + 3], place(raw, id), tonumber(ARGV[from + 4]))
  count('w' .. sub(lane, 2), 1)
end

-- `from`: where the contents stand in ARGV.
local function attach(nid, rest, count, first, from)
  for nth = 1, count do
    local content = content_of(rest, first, nth)
    if call('HEXISTS', content, 'content') == 0 then call('HSET', content, 'content', ARGV[from + nth - 1]) end
    call('HSET', content, nid, '')
  end
end

-- The same to the last byte of what nothing changes, from when it is remembered until on: kept by this very
-- call, whose answer was lost.
local function is_own(raw, rest)
  return ARGV[6] == '1' and sub(raw, 26) == sub(rest, 14)
end

local function known(key, raw, rest)
  -- The same key with another request is a mistake of the caller's, not a repeat.
  if sub(raw, 52, 83) == sub(rest, 40, 71) then
    local repeats = pack('>I4', math.min(take('>I4', raw, 22) + 1, 4294967295))
    raw = sub(raw, 1, 21) .. repeats .. sub(raw, 26)
    if made[key] then
      made[key] = raw
      write(key, raw)
    else
      call('SETRANGE', key, 21, repeats)
    end
  end
  -- Without its inputs, which can be large, and are nobody's business who only has the key.
  local answer = { sub(raw, 1, #raw - take('>I4', raw, 48)) }
  for nth = 1, byte(raw, 21) do
    local one = root .. 'd' .. delivery_id(raw, nth)
    answer[nth + 1] = made[one] or call('GET', one)
  end
  return answer
end

for item = 2, #KEYS do
  local key, nid, rest, deliveries = KEYS[item], ARGV[at + 1], ARGV[at + 2], tonumber(ARGV[at + 4])
  local contents, first_content = attached(rest, take('>I4', rest, 36))
  local raw = made[key] or found[item - 1]
  if raw and not made[key] and is_own(raw, rest) then
    made[key] = raw
    answers[item - 1] = 1
  elseif raw then
    answers[item - 1] = known(key, raw, rest)
  else
    local tombstone = call('HGET', tomb_of(nid, buckets), nid)
    answers[item - 1] = tombstone or 1
    if not tombstone then
      local pos = create(key, tonumber(ARGV[at]), nid, rest, ARGV[at + 3])
      for i = 0, deliveries - 1 do deliver(pos, at + 5 + i * 5) end
      attach(nid, rest, contents, first_content, at + 5 + deliveries * 5)
    end
  end
  at = at + 5 + deliveries * 5 + contents
end
for i = 1, #values, 1000 do call('MSET', unpack(values, i, math.min(i + 999, #values))) end
local more = {}
if ordinal > first then
  more = { root .. 'pos', int(position), root .. 'ord', int(ordinal) }
  for epoch, by in pairs(live) do call('HINCRBY', root .. 'live', int(epoch), int(by)) end
end
return { finish(more), position, answers }
