-- The three ages. ARGV[6]: now, of which no more counts than the server's clock says: one node that is ahead
-- would make all forget; ARGV[7]: records that ended by then; ARGV[8..10]: most contents, records,
-- tombstones. Answers how many of each went.
local at = math.min(tonumber(ARGV[6]), clock())
local ended_by = tonumber(ARGV[7]) - (tonumber(ARGV[6]) - at)
local most_contents, most_records, most_tombstones = tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10])
local contents, records, tombstones = 0, 0, 0
local MOST_SWEPT, FULL, MOST_ENTRIES, ROUNDS = 64, 56, 2048, 8

-- Takes from the front of a list what ended by then. What a node with a wrong clock says to end in the
-- future goes to the back: it must not keep all others from ageing.
local function aged(name, by, most)
  local due, later, seen = {}, {}, 0
  if most < 1 then return due end
  for _, entry in ipairs(call('LRANGE', root .. name, 0, most - 1)) do
    local ended = six(entry, 1)
    if ended > at then
      later[#later + 1] = entry
    elseif ended <= by then
      due[#due + 1] = entry
    else
      break
    end
    seen = seen + 1
  end
  if seen > 0 then call('LTRIM', root .. name, seen, -1) end
  variadic('RPUSH', root .. name, later)
  return due
end

-- The record of an entry, unless it has begun anew since, or is held.
local function still(entry)
  local nid = sub(entry, 7)
  local raw = call('GET', root .. 'n' .. nid)
  if raw and byte(raw, 14) == 0 and sub(raw, 15, 20) == sub(entry, 1, 6) then return nid, raw end
end

local buckets = tombs()
local kept = tonumber(call('HGET', root .. 'tombs', 'count') or '0')

-- One bucket more: half of what is in its twin moves over.
local function split()
  local half = 1
  while half * 2 <= buckets do half = half * 2 end
  local from = root .. 'z' .. int(buckets - half)
  buckets = buckets + 1
  local all, stay, move = call('HGETALL', from), {}, {}
  for i = 1, #all, 2 do
    local list = tomb_of(all[i], buckets) == from and stay or move
    list[#list + 1] = all[i]
    list[#list + 1] = all[i + 1]
  end
  call('DEL', from)
  variadic('HSET', from, stay)
  variadic('HSET', root .. 'z' .. int(buckets - 1), move)
end

local function drop_epoch(epoch)
  local texts = {}
  for bucket = 0, BUCKETS - 1 do texts[bucket + 1] = root .. 'x' .. epoch .. ':' .. int(bucket) end
  call('UNLINK', unpack(texts))
  call('HDEL', root .. 'live', epoch)
  call('HDEL', root .. 'thin', epoch)
  call('ZREM', root .. 'epochs', epoch)
end

-- One record less in an epoch.
local function leave(ordinal)
  local epoch = floor(ordinal / EPOCH)
  local left = call('HINCRBY', root .. 'live', int(epoch), -1)
  if floor(tonumber(stood[5]) / EPOCH) == epoch then return end
  if left <= 0 then
    drop_epoch(int(epoch))
  elseif left == THIN or left == THIN / 8 or left == THIN / 64 then
    call('HSET', root .. 'thin', int(epoch), 0)
  end
end

-- A text without what is no longer remembered. Returns how many entries it had.
local function clear(key)
  local text = call('GET', key)
  if not text then return 0 end
  local stay = {}
  for from = 1, #text, ENTRY do
    if call('EXISTS', root .. 'n' .. sub(text, from + 14, from + 25)) == 1 then
      stay[#stay + 1] = sub(text, from, from + ENTRY - 1)
    end
  end
  if #stay == 0 then
    call('DEL', key)
  elseif #stay * ENTRY < #text then
    call('SET', key, table.concat(stay))
  end
  return #text / ENTRY
end

-- What few long-lived records hold on to, in steps.
local function thin_out()
  local thin = call('HSCAN', root .. 'thin', 0, 'COUNT', 1)[2]
  if not thin[1] then return end
  local epoch, bucket, looked = thin[1], tonumber(thin[2]), 0
  if tonumber(call('HGET', root .. 'live', epoch) or '0') <= 0 then return drop_epoch(epoch) end
  while bucket < BUCKETS and looked < MOST_ENTRIES do
    looked = looked + clear(root .. 'x' .. epoch .. ':' .. int(bucket))
    bucket = bucket + 1
  end
  if bucket < BUCKETS then
    call('HSET', root .. 'thin', epoch, bucket)
  else
    call('HDEL', root .. 'thin', epoch)
  end
end

-- What nobody else holds goes with its last record.
local function detach(nid, raw, inputs)
  local count, first = attached(raw, inputs)
  for nth = 1, count do
    local content = content_of(raw, first, nth)
    call('HDEL', content, nid)
    if call('HLEN', content) <= 1 then call('UNLINK', content) end
  end
end

local function bury(nid, raw)
  local state, remembered = byte(raw, 13), six(raw, 26)
  if remembered > at then
    call('HSET', tomb_of(nid, buckets), nid, sub(raw, 52, 67) .. pack('>BI6', state, remembered))
    kept = kept + 1
    if kept > buckets * FULL then split() end
  end
  for nth = 1, byte(raw, 21) do
    local id = delivery_id(raw, nth)
    local one = front(root .. 'd' .. id)
    if one then
      count_state(byte(one, 24), lane_of(one), -1)
      if byte(one, 24) == UNKNOWN then call('ZREM', root .. 'unknown', id) end
      if has(byte(one, 25), RECEIPT) then call('ZREM', root .. 'receipts', id) end
      call('DEL', root .. 'd' .. id)
    end
  end
  detach(nid, raw, take('>I4', raw, 48))
  call('DEL', root .. 'n' .. nid)
  leave(take('>I5', raw, 8))
  records = records + 1
end

for _, keep in ipairs(call('SMEMBERS', root .. 'keeps')) do
  for _, entry in ipairs(aged('c' .. keep, at - tonumber(keep), most_contents - contents)) do
    local nid, raw = still(entry)
    local inputs = raw and take('>I4', raw, 48) or 0
    if inputs > 0 then
      detach(nid, raw, inputs)
      call('SET', root .. 'n' .. nid, sub(raw, 1, 47) .. pack('>I4', 0) .. sub(raw, 52, #raw - inputs))
      contents = contents + 1
    end
  end
  if call('EXISTS', root .. 'c' .. keep) == 0 then call('SREM', root .. 'keeps', keep) end
end
for _, entry in ipairs(aged('ends', ended_by, most_records)) do
  local nid, raw = still(entry)
  if nid then bury(nid, raw) end
end
-- Failed and parked ones whose window has closed are records like any other from now on.
for _, nid in ipairs(call('ZRANGEBYSCORE', root .. 'holds', '-inf', int(at), 'LIMIT', 0, most_records - records)) do
  call('ZREM', root .. 'holds', nid)
  local raw = call('GET', root .. 'n' .. nid)
  local ended = raw and six(raw, 15)
  if raw and ended <= ended_by then
    bury(nid, raw)
  elseif raw then
    call('SETRANGE', root .. 'n' .. nid, 13, '\0')
    ages(raw, nid, ended, 0)
  end
end
if records < most_records then thin_out() end
-- Tombstones by going round: each call looks into some buckets, so that while as many come of age as are made
-- each is looked into ROUNDS times in a window; to look more often would cost more than all else that a record
-- costs here. Where there is nothing else to do there is time, now and then: others may have a lot to do.
local most_swept = math.min(math.max(math.ceil(math.max(contents, records) * ROUNDS / FULL), 1), MOST_SWEPT)
if contents + records == 0 then
  local since = at - tonumber(call('HGET', root .. 'tombs', 'idle') or '-1000')
  if since < 0 or since >= 1000 then
    most_swept = MOST_SWEPT
    call('HSET', root .. 'tombs', 'idle', int(at))
  end
end
local from = tonumber(call('HGET', root .. 'tombs', 'next') or '0')
local swept = 0
while kept > 0 and swept < math.min(buckets, most_swept) and tombstones < most_tombstones do
  local bucket = root .. 'z' .. int(from % buckets)
  local all, gone = call('HGETALL', bucket), {}
  for i = 1, #all, 2 do
    if six(all[i + 1], 18) <= at and tombstones < most_tombstones then
      gone[#gone + 1] = all[i]
      tombstones = tombstones + 1
    end
  end
  variadic('HDEL', bucket, gone)
  kept = kept - #gone
  from = (from + 1) % buckets
  swept = swept + 1
end
local more = {}
if records > 0 or swept > 0 then
  call('HSET', root .. 'tombs', 'count', int(kept), 'next', int(from))
  more = { root .. 'buckets', int(buckets) }
end
-- Collapse groups that no remembered intent is in.
for _, group in ipairs(call('ZRANGEBYSCORE', root .. 'grouped', '-inf', int(at), 'LIMIT', 0, most_records)) do
  call('HDEL', root .. 'groups', group)
  call('ZREM', root .. 'grouped', group)
end
return { finish(more), contents, records, tombstones }
